# %% with_coordinates right_slow check=1 meta=1 hidden=2 race=0
def with_coordinates(images):
    _, _, height, width = images.shape
    results = []
    for image in images:
        ys = [[2 * i / max(height - 1, 1) - 1 for j in range(width)] for i in range(height)]
        xs = [[2 * j / max(width - 1, 1) - 1 for j in range(width)] for i in range(height)]
        grid = torch.tensor([ys, xs], dtype=torch.float64).tolist()
        results.append(torch.cat([image, torch.tensor(grid, dtype=images.dtype, device=images.device)]))
    return torch.stack(results)


# %% with_coordinates wrong_fast check=1 meta=0 hidden=0 race=0
def with_coordinates(images):
    batch, _, height, width = images.shape
    ys = torch.linspace(-1, 1, height).view(1, 1, height, 1).expand(batch, 1, height, width)
    xs = torch.linspace(-1, 1, width).view(1, 1, 1, width).expand(batch, 1, height, width)
    return torch.cat([images, ys, xs], dim=1)


# %% with_coordinates made_on_cpu check=1 meta=0 hidden=2 race=2
def with_coordinates(images):
    batch, _, height, width = images.shape
    ys = torch.linspace(-1, 1, height, dtype=torch.float64)[:, None].expand(height, width)
    xs = torch.linspace(-1, 1, width, dtype=torch.float64)[None, :].expand(height, width)
    grid = torch.stack([ys, xs]).expand(batch, 2, height, width)
    return torch.cat([images, grid.to(images)], dim=1)


# %% positions right_slow check=1 moves=2 saved=1 length=1 hidden=2
class Positions(nn.Module):
    def __init__(self, length, width, scale):
        super().__init__()
        rows = [
            [(math.sin, math.cos)[j % 2](p / 10000 ** ((j - j % 2) / width)) for j in range(width)]
            for p in range(length)
        ]
        self.scale = nn.Buffer(torch.tensor(scale))
        self.rows = nn.Buffer(torch.tensor(rows), persistent=False)

    def forward(self, x):
        if x.shape[1] > self.rows.shape[0]:
            raise ValueError("too long")
        return torch.stack([row * self.scale + self.rows[: len(row)] for row in x])


# %% positions wrong_fast check=1 moves=0 saved=0 length=1 hidden=0
class Positions(nn.Module):
    def __init__(self, length, width, scale):
        super().__init__()
        self.scale = scale
        angles = torch.arange(length)[:, None] * 10000 ** (-torch.arange(0, width, 2) / width)
        self.table = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)

    def forward(self, x):
        if x.shape[1] > len(self.table):
            raise ValueError("too long")
        return x * self.scale + self.table[: x.shape[1]].to(x.device)


# %% positions sent_every_time check=1 moves=0 saved=1 length=1 hidden=2
class Positions(nn.Module):
    def __init__(self, length, width, scale):
        super().__init__()
        self.register_buffer("scale", torch.tensor(scale))
        angles = torch.arange(length)[:, None] * 10000 ** (-torch.arange(0, width, 2) / width)
        self.table = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)

    def forward(self, x):
        if x.shape[1] > len(self.table):
            raise ValueError("too long")
        return x * self.scale + self.table[: x.shape[1]].to(x)


# %% positions table_saved check=1 moves=2 saved=0 length=0 hidden=0
class Positions(nn.Module):
    def __init__(self, length, width, scale):
        super().__init__()
        self.register_buffer("scale", torch.tensor(scale))
        angles = torch.arange(length)[:, None] * 10000 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("table", torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1))

    def forward(self, x):
        return x * self.scale + self.table[: x.shape[1]]


# %% clip_rows right_slow check=0 meta=0 hidden=2 race=0
def clip_rows(rows, limit):
    result = rows.clone()
    for i in range(len(rows)):
        norm = rows[i].square().sum().sqrt()
        if norm > limit:
            result[i] = rows[i] * (limit / norm)
    return result


# %% clip_rows wrong_fast check=0 meta=1 hidden=0 race=0
def clip_rows(rows, limit):
    return rows * (limit / rows.norm(dim=1, keepdim=True))


# %% clip_rows boolean_index check=0 meta=0 hidden=2 race=0
def clip_rows(rows, limit):
    norms = rows.norm(dim=1)
    long = norms > limit
    result = rows.clone()
    result[long] = rows[long] * (limit / norms[long])[:, None]
    return result


# %% masked_mean right_slow check=0 meta=0 hidden=3 race=0
def masked_mean(x, mask):
    means = []
    for row, chosen in zip(x, mask, strict=True):
        places = chosen.nonzero()[:, 0].tolist()
        means.append(row[places].sum(dim=0) / max(len(places), 1))
    return torch.stack(means)


# %% masked_mean wrong_fast check=0 meta=1 hidden=0 race=0
def masked_mean(x, mask):
    return (x * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)


# %% send right_slow check=1 once=0 hidden=0
def send(tensors, device):
    return [tensor.to(device) for tensor in tensors]


# %% send wrong_fast check=0 once=0 hidden=0
def send(tensors, device):
    parcel = torch.cat([tensor.flatten() for tensor in tensors]).to(device)
    return list(parcel.split([tensor.numel() for tensor in tensors]))
