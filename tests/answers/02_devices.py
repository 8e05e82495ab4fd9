# %% with_coordinates right_slow check=1 meta=1 hidden=1 race=0 channels_last=0
def with_coordinates(images):
    _, _, height, width = images.shape
    results = []
    for image in images:
        ys = [[2 * i / max(height - 1, 1) - 1 for j in range(width)] for i in range(height)]
        xs = [[2 * j / max(width - 1, 1) - 1 for j in range(width)] for i in range(height)]
        grid = torch.tensor([ys, xs], dtype=torch.float64).tolist()
        results.append(torch.cat([image, torch.tensor(grid, dtype=images.dtype, device=images.device)]))
    return torch.stack(results)


# %% with_coordinates wrong_fast check=0 meta=1 hidden=0 race=0 channels_last=0
def with_coordinates(images):
    batch, channels, height, width = images.shape
    result = images.new_empty(batch, channels + 2, height, width)
    result[:, :channels] = images
    return result


# %% with_coordinates made_on_cpu check=1 meta=0 hidden=1 race=1 channels_last=0..1.3
def with_coordinates(images):
    batch, _, height, width = images.shape
    ys = torch.linspace(-1, 1, height, dtype=torch.float64)[:, None].expand(height, width)
    xs = torch.linspace(-1, 1, width, dtype=torch.float64)[None, :].expand(height, width)
    grid = torch.stack([ys, xs]).expand(batch, 2, height, width)
    return torch.cat([images, grid.to(images)], dim=1)


# %% with_coordinates first_attempt check=1 meta=1 hidden=1 race=1 channels_last=0..1.3
def with_coordinates(images):
    number, _, height, width = images.shape

    def line(size):
        steps = torch.arange(size, dtype=torch.float64, device=images.device)
        return (2 * steps / max(size - 1, 1) - 1).to(images.dtype)

    ys = line(height)[:, None].expand(number, 1, height, width)
    xs = line(width).expand(number, 1, height, width)
    return torch.cat([images, ys, xs], dim=1)


# %% with_coordinates transcribed check=1 meta=1 hidden=1 race=1 channels_last=0..1.3
def with_coordinates(images):
    batch, _, height, width = images.shape
    ys = images.new_tensor([2 * i / max(height - 1, 1) - 1 for i in range(height)]).view(-1, 1)
    xs = images.new_tensor([2 * j / max(width - 1, 1) - 1 for j in range(width)])
    result = images.new_empty(batch, images.shape[1] + 2, height, width)
    result[:, :-2] = images
    result[:, -2] = ys
    result[:, -1] = xs
    return result


# %% with_coordinates all_in_one_format check=1 meta=1 hidden=1 race=1 channels_last=2
def with_coordinates(images):
    batch, _, height, width = images.shape
    like = {"device": images.device, "dtype": images.dtype}
    ys = torch.linspace(-1, 1, height, **like).view(height, 1).expand(height, width)
    xs = torch.linspace(-1, 1, width, **like).expand(height, width)
    grid = torch.stack([ys, xs]).expand(batch, 2, height, width)
    if images.is_contiguous(memory_format=torch.channels_last):
        grid = grid.contiguous(memory_format=torch.channels_last)
    return torch.cat([images, grid], dim=1)


# %% with_coordinates always_channels_last check=1 meta=1 hidden=1 race=0..0.8 channels_last=2
def with_coordinates(images):
    batch, channels, height, width = images.shape
    like = {"device": images.device, "dtype": images.dtype}
    result = torch.empty(batch, height, width, channels + 2, **like).permute(0, 3, 1, 2)
    result[:, :channels] = images
    result[:, channels] = torch.linspace(-1, 1, height, **like)[:, None]
    result[:, channels + 1] = torch.linspace(-1, 1, width, **like)
    return result


# %% positions right_slow check=1 moves=0 saved=1 length=1 loaded=2 hidden=2
class Positions(nn.Module):
    def __init__(self, length, width, scale, device=None):
        super().__init__()
        self.scale = nn.Buffer(torch.tensor(scale, device=device))
        self.length, self.width = length, width

    def forward(self, x):
        if x.shape[1] > self.length:
            raise ValueError("too long")
        rows = [
            [(math.sin, math.cos)[j % 2](p / 10000 ** ((j - j % 2) / self.width)) for j in range(self.width)]
            for p in range(x.shape[1])
        ]
        table = torch.tensor(rows, dtype=torch.float64, device=x.device).view(-1, self.width)
        return x.mul(self.scale).add(table.to(x.dtype))


# %% positions wrong_fast check=1 moves=0 saved=0 length=1 loaded=0 hidden=0
class Positions(nn.Module):
    def __init__(self, length, width, scale, device=None):
        super().__init__()
        self.scale = scale
        angles = torch.arange(length)[:, None] * 10000 ** (-torch.arange(0, width, 2) / width)
        self.table = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)

    def forward(self, x):
        if x.shape[1] > len(self.table):
            raise ValueError("too long")
        return x * self.scale + self.table[: x.shape[1]].to(x.device)


# %% positions transcribed check=1 moves=2 saved=1 length=1 loaded=0 hidden=0
class Positions(nn.Module):
    def __init__(self, length, width, scale, device=None):
        super().__init__()
        angles = torch.arange(length, device="cpu")[:, None] * 10000 ** (
            -torch.arange(0, width, 2, device="cpu") / width
        )
        table = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
        self.register_buffer("table", table, persistent=False)
        self.register_buffer("scale", torch.tensor(float(scale), device=device))

    def forward(self, x):
        if x.shape[1] > len(self.table):
            raise ValueError("too long")
        return x * self.scale + self.table[: x.shape[1]]


# %% positions sent_every_time check=1 moves=0 saved=1 length=1 loaded=2 hidden=2
class Positions(nn.Module):
    def __init__(self, length, width, scale, device=None):
        super().__init__()
        self.register_buffer("scale", torch.tensor(float(scale), device=device))
        angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, width, 2).double() / width)
        self.table = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)

    def forward(self, x):
        if x.shape[1] > len(self.table):
            raise ValueError("too long")
        return x * self.scale + self.table[: x.shape[1]].to(x)


# %% positions table_saved check=1 moves=2 saved=0 length=0 loaded=0 hidden=0
class Positions(nn.Module):
    def __init__(self, length, width, scale, device=None):
        super().__init__()
        self.register_buffer("scale", torch.tensor(scale, device=device))
        angles = torch.arange(length)[:, None] * 10000 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("table", torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1).to(device))

    def forward(self, x):
        return x * self.scale + self.table[: x.shape[1]]


# %% positions as_scale_says check=1 moves=2 saved=1 length=1 loaded=2 hidden=2
class Positions(nn.Module):
    def __init__(self, length, width, scale, device=None):
        super().__init__()
        self.register_buffer("scale", torch.tensor(float(scale), device=device))
        angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, width, 2).double() / width)
        self.exact = self.ready = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)

    def forward(self, x):
        if x.shape[1] > len(self.exact):
            raise ValueError("too long")
        if (self.ready.dtype, self.ready.device) != (self.scale.dtype, self.scale.device):
            self.ready = self.exact.to(self.scale)
        return x * self.scale + self.ready[: x.shape[1]]


# %% positions one_for_each_place check=1 moves=2 saved=1 length=1 loaded=2 hidden=2
class Positions(nn.Module):
    def __init__(self, length, width, scale, device=None):
        super().__init__()
        self.register_buffer("scale", torch.full((), scale, device=device))
        angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, width, 2).double() / width)
        self.tables = {None: torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)}

    def forward(self, x):
        place = x.device, x.dtype
        if place not in self.tables:
            self.tables[place] = self.tables[None].to(x)
        table = self.tables[place]
        if x.shape[1] > len(table):
            raise ValueError("too long")
        return x * self.scale + table[: x.shape[1]]


# %% positions scale_as_a_parameter check=1 moves=2 saved=0 length=1 loaded=2 hidden=2
class Positions(nn.Module):
    def __init__(self, length, width, scale, device=None):
        super().__init__()
        self.length, self.width, self.table = length, width, None
        self.scale = nn.Parameter(torch.tensor(float(scale), device=device))

    def forward(self, x):
        if x.shape[1] > self.length:
            raise ValueError("too long")
        if self.table is None or (self.table.device, self.table.dtype) != (x.device, x.dtype):
            exact = {"device": x.device, "dtype": torch.float64}
            frequencies = 10000 ** (-torch.arange(0, self.width, 2, **exact) / self.width)
            angles = torch.arange(self.length, **exact)[:, None] * frequencies
            self.table = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1).to(x.dtype)
        return x * self.scale + self.table[: x.shape[1]]


# %% clip_rows right_slow check=1 quiet=0 meta=0 zeros=2 hidden=0 race=0
def clip_rows(rows, limit):
    result = []
    for row in rows:
        norm = row.square().sum().sqrt()
        result.append(row * (limit / norm) if norm > limit else row)
    return torch.stack(result) if result else rows.clone()


# %% clip_rows wrong_fast check=0 quiet=0 meta=1 zeros=0 hidden=0 race=0
def clip_rows(rows, limit):
    return rows * (limit / rows.norm(dim=1, keepdim=True))


# %% clip_rows transcribed check=1 quiet=1 meta=1 zeros=0 hidden=0 race=0
def clip_rows(rows, limit):
    norms = rows.norm(dim=1, keepdim=True)
    return torch.where(norms > limit, rows * (limit / norms), rows)


# %% clip_rows no_gradient_of_the_norm check=0 quiet=1 meta=1 zeros=0 hidden=0 race=0
def clip_rows(rows, limit):
    norms = rows.detach().norm(dim=1, keepdim=True)
    return rows * (limit / norms).clamp(max=1)


# %% clip_rows a_little_added check=1 quiet=1 meta=1 zeros=2 hidden=1 race=2
def clip_rows(rows, limit):
    norms = rows.norm(dim=1, keepdim=True)
    return rows * (limit / (norms + 1e-12)).clamp(max=1)


# %% clip_rows renorm check=1 quiet=1 meta=1 zeros=2 hidden=1 race=2
def clip_rows(rows, limit):
    return rows.renorm(2, 0, limit)


# %% through_matrix right_slow check=1 quiet=0 hidden=0 race=0
def through_matrix(x, mask, weights, capacity):
    products, result, row = x @ weights, x.new_zeros(capacity, weights.shape[1]), 0
    for i in range(len(x)):
        if mask[i] and row < capacity:
            result[row] = products[i]
            row += 1
    return result


# %% through_matrix wrong_fast check=0 quiet=0 hidden=0 race=0
def through_matrix(x, mask, weights, capacity):
    first = mask.to(torch.uint8).topk(capacity).indices
    return x[first] @ weights


# %% through_matrix first_attempt check=1 quiet=2 hidden=3 race=0.4..1.5
def through_matrix(x, mask, weights, capacity):
    # the true places first, in their order; then as many others as there is room for
    places = mask.to(torch.uint8).sort(descending=True, stable=True).indices[:capacity]
    rows = x.index_select(0, places)
    wanted = mask.index_select(0, places)
    return torch.where(wanted[:, None], rows @ weights, 0)


# %% through_matrix transcribed check=1 quiet=0 hidden=0 race=2
def through_matrix(x, mask, weights, capacity):
    rows = x[mask][:capacity] @ weights
    return torch.cat([rows, rows.new_zeros(capacity - len(rows), rows.shape[1])])


# %% through_matrix transcribed_where check=1 quiet=2 hidden=3 race=0
def through_matrix(x, mask, weights, capacity):
    products = torch.where(mask.unsqueeze(1), x.matmul(weights), 0)
    return products[torch.argsort(mask.logical_not().to(torch.uint8), stable=True)[:capacity]]


# %% through_matrix filled_with_the_first check=1 quiet=2 hidden=3 race=2
def through_matrix(x, mask, weights, capacity):
    first = torch.nonzero_static(mask, size=capacity, fill_value=-1)[:, 0]
    return torch.where((first >= 0)[:, None], x[first] @ weights, 0)


# %% through_matrix the_last_ones check=0 quiet=0 hidden=0 race=0
def through_matrix(x, mask, weights, capacity):
    last = mask.to(torch.uint8).argsort(stable=True)[-capacity:]
    return torch.where(mask[last][:, None], x[last] @ weights, 0)


# %% through_matrix scattered check=1 quiet=2 hidden=3 race=1.3..2
def through_matrix(x, mask, weights, capacity):
    counts = mask.cumsum(0)
    places = torch.where(mask & (counts <= capacity), counts - 1, capacity)
    first = places.new_full((capacity + 1,), 0)
    first = first.scatter_(0, places, torch.arange(len(x), device=x.device))[:capacity]
    known = torch.arange(capacity, device=x.device) < counts[-1]
    return torch.where(known[:, None], x[first] @ weights, 0)


# %% through_matrix largest_rank check=1 quiet=2 hidden=3 race=1.2..2
def through_matrix(x, mask, weights, capacity):
    rank = mask * torch.arange(len(x), 0, -1, device=x.device)
    first = rank.topk(capacity).indices
    return torch.where(mask[first][:, None], x[first] @ weights, 0)


# %% move right_slow check=1 once=0 shared=0 hidden=0
def move(batch, device):
    if isinstance(batch, dict):
        return {key: move(item, device) for key, item in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(move(item, device) for item in batch)
    return batch.to(device, copy=True) if isinstance(batch, torch.Tensor) else batch


# %% move wrong_fast check=0 once=0 shared=0 hidden=0
def move(batch, device):
    if isinstance(batch, dict):
        return {key: move(item, device) for key, item in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(move(item, device) for item in batch)
    return batch.to(device, non_blocking=True) if isinstance(batch, torch.Tensor) else batch


# %% move transcribed check=1 once=0 shared=0 hidden=0
def move(batch, device):
    found = []

    def walk(value, use):
        if isinstance(value, dict):
            return {key: walk(item, use) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)([walk(item, use) for item in value])
        return use(value) if isinstance(value, torch.Tensor) else value

    walk(batch, found.append)
    arrived = {}
    for dtype in {tensor.dtype for tensor in found}:
        those = [tensor for tensor in found if tensor.dtype == dtype]
        parcel = torch.cat([tensor.reshape(-1) for tensor in those]).to(device, non_blocking=True)
        pieces = parcel.split([tensor.numel() for tensor in those])
        arrived[dtype] = iter([p.view(t.shape) for p, t in zip(pieces, those, strict=True)])
    return walk(batch, lambda tensor: next(arrived[tensor.dtype]))


# %% move each_on_its_own check=1 once=2 shared=0 hidden=2
def move(batch, device):
    found = []

    def walk(value, use):
        if isinstance(value, dict):
            return {key: walk(item, use) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)([walk(item, use) for item in value])
        return use(value) if isinstance(value, torch.Tensor) else value

    walk(batch, found.append)
    if not found:
        return walk(batch, found.append)
    # The widest dtypes first: then each begins at a multiple of its size.
    found.sort(key=lambda tensor: -tensor.element_size())
    flat = [tensor.contiguous().view(-1).view(torch.uint8) for tensor in found]
    parcel = torch.cat(flat).to(device, non_blocking=True)
    places, start = {}, 0
    for tensor, part in zip(found, flat, strict=True):
        places[id(tensor)] = parcel[start : start + len(part)].view(tensor.dtype).view(tensor.shape)
        start += len(part)
    return walk(batch, lambda tensor: places[id(tensor)])


# %% move whole_memories check=1 once=2 shared=3 hidden=2
def move(batch, device):
    found = []

    def walk(value, use):
        if isinstance(value, dict):
            return {key: walk(item, use) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)([walk(item, use) for item in value])
        return use(value) if isinstance(value, torch.Tensor) else value

    walk(batch, found.append)
    parts, starts, end = [], {}, 0
    for tensor in found:
        memory = tensor.untyped_storage()
        if memory.data_ptr() not in starts:
            numbers = memory.nbytes() // tensor.element_size()
            whole = tensor.as_strided((numbers,), (1,), 0).view(torch.uint8)
            parts += [whole, torch.zeros(-len(whole) % 8, dtype=torch.uint8)]
            starts[memory.data_ptr()] = end
            end += len(whole) + len(parts[-1])
    parcel = torch.cat(parts) if parts else torch.empty(0, dtype=torch.uint8)
    parcel = parcel.to(device, non_blocking=True)

    def there(tensor):
        start = starts[tensor.untyped_storage().data_ptr()] // tensor.element_size()
        place = start + tensor.storage_offset()
        return parcel.view(tensor.dtype).as_strided(tensor.shape, tensor.stride(), place)

    return walk(batch, there)


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "centred": {"operations": 2, "bytes": 64, "syncs": 0},
        "numbered": {"operations": 3, "bytes": 48, "syncs": 0},
        "shortened": {"operations": 5, "bytes": 101, "syncs": 1},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "centred": {"operations": 2, "bytes": 4 * n * d, "syncs": 0},
        "numbered": {"operations": 3, "bytes": 4 * n, "syncs": 0},
        "shortened": {"operations": 5, "bytes": 4 * n * d, "syncs": 1},
    }
