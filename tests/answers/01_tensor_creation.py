# %% one_hot transcribed check=1 hidden=2 range=0 race=0
def one_hot(labels, classes):
    return torch.eye(classes, device=labels.device)[labels]


# %% one_hot right_slow check=1 hidden=2 range=1 race=0
def one_hot(labels, classes):
    rows = []
    for label in labels.tolist():
        if not 0 <= label < classes:
            raise IndexError(label)
        row = torch.zeros(classes, device=labels.device)
        row[label] = 1
        rows.append(row)
    return torch.stack(rows) if rows else torch.zeros(0, classes, device=labels.device)


# %% one_hot wrong_fast check=0 hidden=0 range=0 race=0
def one_hot(labels, classes):
    return torch.eye(classes, device=labels.device)[labels].long()


# %% one_hot right_but_lenient check=1 hidden=2 range=0 race=0
def one_hot(labels, classes):
    return (labels[:, None] == torch.arange(classes, device=labels.device)).float()


# %% one_hot right_with_torchs_own check=1 hidden=2 range=1 race=2
def one_hot(labels, classes):
    return torch.nn.functional.one_hot(labels, classes).float()


# %% one_hot right_with_eye check=1 hidden=2 range=1 race=2
def one_hot(labels, classes):
    if len(labels) and labels.min() < 0:
        raise IndexError("a label is negative")
    return torch.eye(classes, device=labels.device)[labels]


# %% positional_table transcribed check=1 exact=0 hidden=0 odd=1 race=0
def positional_table(length, width, base, device):
    if width % 2:
        raise ValueError("odd width")
    frequencies = 1 / base ** (torch.arange(0, width, 2, device=device) / width)
    angles = torch.arange(length, device=device)[:, None] * frequencies
    table = torch.empty(length, width, device=device)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table


# %% positional_table right_slow check=1 exact=1 hidden=1 odd=1 race=0
def positional_table(length, width, base, device):
    if width % 2:
        raise ValueError("odd width")
    return torch.tensor(
        [
            [(math.sin, math.cos)[j % 2](p / base ** ((j - j % 2) / width)) for j in range(width)]
            for p in range(length)
        ],
        device=device,
    )


# %% positional_table wrong_fast check=0 exact=0 hidden=0 odd=0 race=0
def positional_table(length, width, base, device):
    positions = torch.arange(length, device=device)[:, None]
    frequencies = base ** (-torch.arange(0, width, 2, device=device) / width)
    angles = positions * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)


# %% positional_table wrong_with_exact_positions_only check=1 exact=0 hidden=0 odd=1 race=0
def positional_table(length, width, base, device):
    if width % 2:
        raise ValueError("odd width")
    positions = torch.arange(length, device=device, dtype=torch.float64)
    frequencies = base ** (-torch.arange(0, width, 2, device=device) / width)
    angles = positions[:, None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1).float()


# %% positional_table right_with_outer check=1 exact=1 hidden=1 odd=1 race=0..1.8
def positional_table(length, width, base, device):
    if width % 2:
        raise ValueError("odd width")
    frequencies = torch.tensor([base ** (-i / width) for i in range(0, width, 2)], dtype=torch.float64)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), frequencies)
    table = torch.stack([angles.sin(), angles.cos()], dim=2)
    return table.view(length, width).float().to(device)


# %% positional_table first_attempt check=1 exact=1 hidden=1 odd=1 race=0..1.8
def positional_table(length, width, base, device):
    if width % 2:
        raise ValueError(f"width must be even, not {width}")
    positions = torch.arange(length, dtype=torch.float64, device=device)
    columns = torch.arange(0, width, 2, dtype=torch.float64, device=device)
    angles = positions[:, None] / base ** (columns / width)
    table = torch.empty(length, width, device=device)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


# %% positional_table right_with_whole_turns_off check=1 exact=1 hidden=1 odd=1 race=1.2..2
def positional_table(length, width, base, device):
    if width % 2:
        raise ValueError("odd width")
    columns = torch.arange(0, width, 2, dtype=torch.float64, device=device)
    turns = torch.arange(length, dtype=torch.float64, device=device)[:, None] / base ** (columns / width)
    angles = turns.div_(2 * math.pi).frac_().float().mul_(2 * math.pi)
    table = torch.empty(length, width, device=device)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


# %% positional_table right_as_rotations check=1 exact=1 hidden=1 odd=1 race=2
def positional_table(length, width, base, device):
    if width % 2:
        raise ValueError("odd width")
    frequencies = base ** (-torch.arange(0, width, 2, dtype=torch.float64, device=device) / width)
    far = torch.arange(0, length, 32, dtype=torch.float64, device=device)[:, None] * frequencies
    near = torch.arange(32, dtype=torch.float64, device=device)[:, None] * frequencies
    start = torch.complex(far.sin().float(), far.cos().float())
    turned = start[:, None] * torch.complex(near.cos().float(), -near.sin().float())
    return torch.view_as_real(turned).view(-1, width)[:length]


# %% wrap transcribed check=1 copies=0 order=1 text=1 hidden=0 hidden_shares=1 race=0
def wrap(array):
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    return torch.from_numpy(array)


# %% wrap right_slow check=0 copies=1 order=1 text=1 hidden=1 hidden_shares=0 race=0
def wrap(array):
    return torch.tensor(array.astype(array.dtype.newbyteorder("=")))


# %% wrap wrong_fast check=1 copies=0 order=0 text=1 hidden=0 hidden_shares=1 race=0
def wrap(array):
    return torch.from_numpy(array)


# %% wrap copies_what_has_gaps check=0 copies=1 order=1 text=1 hidden=1 hidden_shares=0 race=0
def wrap(array):
    if not (array.flags.writeable and array.flags.c_contiguous and array.dtype.isnative):
        array = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
    return torch.from_numpy(array)


# %% wrap right_by_trying check=1 copies=1 order=1 text=1 hidden=1 hidden_shares=1 race=1
def wrap(array):
    if array.flags.writeable:
        try:
            return torch.from_numpy(array)
        except ValueError:
            pass
    return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))


# %% stack_images transcribed check=1 empty=1 hidden=1 race=2
def stack_images(images):
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255


# %% stack_images right_slow check=1 empty=1 hidden=1 race=0
def stack_images(images):
    if len({image.shape for image in images}) != 1:
        raise ValueError("no pictures, or pictures of different sizes")
    return torch.stack([torch.tensor(image.tolist()).permute(2, 0, 1) / 255 for image in images])


# %% stack_images wrong_fast check=0 empty=1 hidden=0 race=0
def stack_images(images):
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2) / 256


# %% stack_images right_but_lenient check=1 empty=0 hidden=1 race=0
def stack_images(images):
    if not images:
        raise ValueError("no pictures")
    batch = np.empty((len(images), *images[0].shape), dtype=np.uint8)
    for place, image in zip(batch, images, strict=True):
        place[:] = image
    return torch.from_numpy(batch).permute(0, 3, 1, 2) / 255


# %% pad transcribed check=1 empty=1 hidden=2 race=0.9..2
def pad(rows, value):
    if not rows:
        raise ValueError("no rows")
    result = rows[0].new_full((len(rows), max(len(row) for row in rows)), value)
    for i in range(len(rows)):
        result[i, : len(rows[i])] = rows[i]
    return result


# %% pad right_slow check=1 empty=1 hidden=2 race=0
def pad(rows, value):
    if not rows:
        raise ValueError("no rows")
    longest = max(len(row) for row in rows)
    batch = rows[0].new_empty(0, longest)
    for row in rows:
        filler = torch.tensor([value] * (longest - len(row)), dtype=row.dtype, device=row.device)
        batch = torch.cat([batch, torch.cat([row, filler])[None]])
    return batch


# %% pad wrong_fast check=0 empty=0 hidden=0 race=0
def pad(rows, value):
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True) if rows else torch.zeros(0, 0)


# %% pad right_with_torchs_own check=1 empty=1 hidden=2 race=2..3
def pad(rows, value):
    if not rows:
        raise ValueError("no rows")
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)


# %% pad right_with_a_mask check=1 empty=1 hidden=2 race=2.5..3
def pad(rows, value):
    if not rows:
        raise ValueError("no rows")
    device = rows[0].device
    lengths = torch.tensor([len(row) for row in rows], device=device)
    batch = rows[0].new_full((len(rows), int(lengths.max())), value)
    batch[torch.arange(batch.shape[1], device=device) < lengths[:, None]] = torch.cat(rows)
    return batch


# %% rows transcribed check=1 refused=1 lean=0 hidden=2 hidden_lean=0
class Rows:
    def __init__(self, width, dtype, device):
        self.parts = [torch.empty(0, width, dtype=dtype, device=device)]

    def append(self, rows):
        first = self.parts[0]
        if rows.ndim != 2 or rows.shape[1] != first.shape[1] or rows.dtype != first.dtype:
            raise ValueError("bad rows")
        self.parts.append(rows.clone())

    def all(self):
        self.parts = [torch.cat(self.parts)]
        return self.parts[0]


# %% rows right_slow check=1 refused=1 lean=0 hidden=2 hidden_lean=0
class Rows:
    def __init__(self, width, dtype, device):
        self.table = torch.zeros(0, width, dtype=dtype, device=device)

    def append(self, rows):
        if rows.shape[1:] != self.table.shape[1:] or rows.dtype != self.table.dtype:
            raise ValueError("bad rows")
        self.table = torch.cat([self.table, rows])

    def all(self):
        return self.table


# %% rows wrong_fast check=0 refused=0 lean=2 hidden=0 hidden_lean=1
class Rows:
    def __init__(self, width, dtype, device):
        self.memory, self.used = torch.empty(8, width, dtype=dtype, device=device), 0

    def append(self, rows):
        needed = self.used + len(rows)
        if needed > len(self.memory):
            larger = self.memory.new_empty(2 * len(self.memory), self.memory.shape[1])
            larger[: self.used] = self.memory[: self.used]
            self.memory = larger
        self.memory[self.used : needed] = rows
        self.used = needed

    def all(self):
        return self.memory[: self.used]


# %% rows right_but_lenient check=1 refused=0 lean=2 hidden=2 hidden_lean=1
class Rows:
    def __init__(self, width, dtype, device):
        self.memory, self.used = torch.empty(4, width, dtype=dtype, device=device), 0

    def append(self, rows):
        needed = self.used + len(rows)
        if needed > len(self.memory):
            larger = self.memory.new_empty(2 * needed, self.memory.shape[1])
            larger[: self.used] = self.memory[: self.used]
            self.memory = larger
        self.memory[self.used : needed] = rows
        self.used = needed

    def all(self):
        return self.memory[: self.used]


# %% rows right_in_fixed_steps check=1 refused=1 lean=0 hidden=2 hidden_lean=0
class Rows:
    def __init__(self, width, dtype, device):
        self.memory, self.used = torch.empty(0, width, dtype=dtype, device=device), 0

    def append(self, rows):
        if rows.ndim != 2 or rows.shape[1] != self.memory.shape[1] or rows.dtype != self.memory.dtype:
            raise ValueError("bad rows")
        needed = self.used + len(rows)
        if needed > len(self.memory):
            larger = self.memory.new_empty(needed + 4, self.memory.shape[1])
            larger[: self.used] = self.memory[: self.used]
            self.memory = larger
        self.memory[self.used : needed] = rows
        self.used = needed

    def all(self):
        return self.memory[: self.used]


# %% rows wrong_by_way_of_numpy check=1 refused=1 lean=0 hidden=2 hidden_lean=1
class Rows:
    def __init__(self, width, dtype, device):
        self.device = device
        self.table = torch.empty(0, width, dtype=dtype).numpy()

    def append(self, rows):
        array = rows.numpy()
        if array.ndim != 2 or array.shape[1] != self.table.shape[1] or array.dtype != self.table.dtype:
            raise ValueError("bad rows")
        self.table = np.concatenate([self.table, array])

    def all(self):
        return torch.from_numpy(self.table).to(self.device)


# %% rows right_with_half_more check=1 refused=1 lean=2 hidden=2 hidden_lean=1
class Rows:
    def __init__(self, width, dtype, device):
        self.memory, self.used = torch.empty(16, width, dtype=dtype, device=device), 0

    def append(self, rows):
        if rows.ndim != 2 or rows.size(1) != self.memory.size(1) or rows.dtype != self.memory.dtype:
            raise ValueError("bad rows")
        start, self.used = self.used, self.used + len(rows)
        if self.used > len(self.memory):
            old = self.memory
            self.memory = torch.empty_like(old[:1].expand(self.used + self.used // 2, -1))
            self.memory[:start].copy_(old[:start])
        self.memory[start : self.used].copy_(rows)

    def all(self):
        return self.memory.narrow(0, 0, self.used)


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "similar": {"operations": 2, "bytes": 72, "syncs": 0},
        "report": {"operations": 6, "bytes": 12, "syncs": 3},
        "numbered": {"operations": 3, "bytes": 48, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "similar": {"operations": 2, "bytes": 4 * n * n, "syncs": 0},
        "report": {"operations": 2 * n, "bytes": 0, "syncs": n},
        "numbered": {"operations": 3, "bytes": 4 * n, "syncs": 0},
    }
