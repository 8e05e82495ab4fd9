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


# %% positional_table right_slow check=1 hidden=2 odd=1 race=0
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


# %% positional_table wrong_fast check=0 hidden=0 odd=0 race=0
def positional_table(length, width, base, device):
    positions = torch.arange(length, device=device)[:, None]
    frequencies = base ** (-torch.arange(0, width, 2, device=device) / width)
    angles = positions * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)


# %% wrap right_slow check=0 copies=1 hidden=2 hidden_shares=0 race=0
def wrap(array):
    return torch.tensor(array.copy())


# %% wrap wrong_fast check=1 copies=0 hidden=0 hidden_shares=1 race=0
def wrap(array):
    return torch.from_numpy(array)


# %% stack_images right_slow check=1 empty=1 hidden=2 race=0
def stack_images(images):
    if len({image.shape for image in images}) != 1:
        raise ValueError("no pictures, or pictures of different sizes")
    return torch.stack([torch.tensor(image.tolist()).permute(2, 0, 1) / 255 for image in images])


# %% stack_images wrong_fast check=0 empty=1 hidden=0 race=0
def stack_images(images):
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2) / 256


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


# %% pad wrong_fast check=1 empty=0 hidden=0 race=0
def pad(rows, value):
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True) if rows else torch.zeros(0, 0)
