# %% collate right_slow check=1 empty=1 hidden=2 race=0
def collate(samples):
    if not samples:
        raise ValueError("no samples")
    pictures = torch.tensor(samples[0][0].copy()).permute(2, 0, 1)[None]
    labels = torch.tensor([samples[0][1]])
    for picture, label in samples[1:]:
        picture = torch.tensor(picture.tolist(), dtype=torch.uint8)
        pictures = torch.cat([pictures, picture.permute(2, 0, 1)[None]])
        labels = torch.cat([labels, torch.tensor([label])])
    return pictures, labels


# %% collate wrong_fast check=0 empty=1 hidden=0 race=0
def collate(samples):
    batch = np.stack([picture for picture, _ in samples])
    number, height, width, _ = batch.shape
    labels = torch.tensor([label for _, label in samples])
    return torch.from_numpy(batch).reshape(number, 3, height, width), labels


# %% collate right_with_torch check=1 empty=1 hidden=2 race=2
def collate(samples):
    if len(samples) == 0:
        raise ValueError("no samples")
    pictures = torch.stack([torch.from_numpy(np.ascontiguousarray(picture)) for picture, _ in samples])
    return pictures.movedim(-1, 1), torch.tensor([label for _, label in samples])


# %% collate right_allocate_and_fill check=1 empty=1 hidden=2 race=2
def collate(samples):
    if not samples:
        raise ValueError("no samples")
    batch = np.empty((len(samples), *samples[0][0].shape), dtype=np.uint8)
    for i, (picture, _) in enumerate(samples):
        batch[i] = picture
    labels = np.array([label for _, label in samples])
    return torch.from_numpy(batch.transpose(0, 3, 1, 2)), torch.from_numpy(labels)


# %% crop right_slow check=1 counted=0 hidden=2 race=0
def crop(images, top, left, size):
    result = images.new_empty(0, images.shape[1], size, size)
    for i in range(len(images)):
        row, column = top[i].item(), left[i].item()
        square = images[i].narrow(1, row, size).narrow(2, column, size).clone()
        result = torch.cat([result, square[None]])
    return result


# %% crop wrong_fast check=0 counted=0 hidden=0 race=0
def crop(images, top, left, size):
    squares = images.unfold(2, size, 1).unfold(3, size, 1)
    return squares[torch.arange(len(images), device=images.device), :, left, top]


# %% crop right_with_indices check=1 counted=2 hidden=2 race=2
def crop(images, top, left, size):
    device = images.device
    picture = torch.arange(len(images), device=device)[:, None, None, None]
    channel = torch.arange(images.shape[1], device=device)[:, None, None]
    row = (top[:, None] + torch.arange(size, device=device))[:, None, :, None]
    column = (left[:, None] + torch.arange(size, device=device))[:, None, None, :]
    return images[picture, channel, row, column]


# %% crop right_with_gather check=1 counted=2 hidden=2 race=2
def crop(images, top, left, size):
    n, c, _, width = images.shape
    steps = torch.arange(size, device=images.device)
    rows, columns = top[:, None] + steps, left[:, None] + steps
    flat = (rows[:, :, None] * width + columns[:, None, :]).view(n, 1, -1).expand(n, c, -1)
    return images.flatten(2).gather(2, flat).view(n, c, size, size)


# %% read_epochs right_slow check=1 damaged=1 hidden=2 race=0
def read_epochs(files, epochs, side):
    result = []
    for positions in epochs:
        batch = torch.empty(0, 3, side, side, dtype=torch.uint8)
        for position in positions:
            Image.open(io.BytesIO(files[position].tobytes())).load()  # is it damaged?
            batch = torch.cat([batch, decode_picture(files[position], side)[None]])
        result.append(batch)
    return result


# %% read_epochs wrong_fast check=1 damaged=1 hidden=0 race=0
def read_epochs(files, epochs, side):
    pictures = torch.stack([decode_picture(file, side) for file in files])
    return [pictures[positions] for positions in epochs]


# %% read_epochs right_with_dictionary check=1 damaged=1 hidden=2 race=2
def read_epochs(files, epochs, side):
    kept = {}
    result = []
    for positions in epochs:
        for position in positions:
            if position not in kept:
                kept[position] = decode_picture(files[position], side)
        pictures = [kept[position] for position in positions]
        result.append(torch.stack(pictures) if pictures else torch.empty(0, 3, side, side, dtype=torch.uint8))
    return result


# %% encode right_slow check=1 hidden=2 race=0
def encode(rows, table, weight):
    longest = max([len(row) for row in rows] + [1])
    batch = torch.zeros(len(rows), longest, dtype=torch.int64, device=table.device)
    for i, row in enumerate(rows):
        batch[i, : len(row)] = row
    lengths = torch.tensor([len(row) for row in rows], device=table.device).long()
    used = torch.arange(longest, device=table.device) < lengths[:, None]
    vectors = torch.tanh(table[batch] @ weight) * used[:, :, None]
    return (vectors + 0).sum(1) / lengths.clamp(min=1)[:, None]


# %% encode wrong_fast check=1 hidden=0 race=0
def encode(rows, table, weight):
    words = torch.tanh(table[torch.cat(rows)] @ weight)
    return torch.stack([part.mean(0) for part in words.split([len(row) for row in rows])])


# %% encode right_by_length check=1 hidden=2 race=2
def encode(rows, table, weight):
    result = table.new_zeros(len(rows), weight.shape[1])
    order = sorted((i for i in range(len(rows)) if len(rows[i])), key=lambda i: len(rows[i]))
    for start in range(0, len(order), 8):
        group = order[start : start + 8]
        batch = torch.nn.utils.rnn.pad_sequence([rows[i] for i in group], batch_first=True)
        lengths = torch.tensor([len(rows[i]) for i in group], device=table.device)
        used = torch.arange(batch.shape[1], device=table.device) < lengths[:, None]
        vectors = torch.tanh(table[batch] @ weight) * used[:, :, None]
        result[group] = vectors.sum(1) / lengths[:, None]
    return result


# %% encode right_with_split check=1 hidden=2 race=2
def encode(rows, table, weight):
    result = table.new_zeros(len(rows), weight.shape[1])
    if rows:
        words = torch.tanh(table[torch.cat(rows)] @ weight)
        for i, part in enumerate(words.split([len(row) for row in rows])):
            if len(part):
                result[i] = part.mean(0)
    return result


# %% send right_slow check=1 counted=0 hidden=1 race=0
def send(batch, mean, std, device):
    images = torch.empty(0, 3, *batch["images"].shape[1:3], device=device)
    for picture in batch["images"]:
        channels = [(picture[:, :, c].to(device).float() / 255.0 - mean) / std * 1.0 for c in range(3)]
        images = torch.cat([images, torch.stack(channels)[None]])
    return {"images": images, "labels": batch["labels"].to(device), "names": batch["names"]}


# %% send wrong_fast check=0 counted=2 hidden=0 race=0
def send(batch, mean, std, device):
    images = batch["images"].to(device, non_blocking=True)
    images = (images / 255).sub_(mean).div_(std).reshape(len(images), 3, *images.shape[1:3])
    labels = batch["labels"].to(device, non_blocking=True)
    return {"images": images, "labels": labels, "names": batch["names"]}


# %% send right_but_floats_travel check=1 counted=0 hidden=1 race=2
def send(batch, mean, std, device):
    images = batch["images"].permute(0, 3, 1, 2).float() / 255
    images = images.to(device, non_blocking=True)
    images = (images - mean) / std
    labels = batch["labels"].to(device, non_blocking=True)
    return {"images": images, "labels": labels, "names": batch["names"]}


# %% send right_but_waits check=1 counted=0 hidden=1 race=2
def send(batch, mean, std, device):
    images = batch["images"].to(device) / 255
    images = images.sub_(mean).div_(std).permute(0, 3, 1, 2)
    return {"images": images, "labels": batch["labels"].to(device), "names": batch["names"]}


# %% send right_folded check=1 counted=2 hidden=1 race=2
def send(batch, mean, std, device):
    images = batch["images"].to(device, non_blocking=True).permute(0, 3, 1, 2).float()
    images.mul_(1 / (255 * std)).sub_(mean / std)
    labels = batch["labels"].to(device, non_blocking=True)
    return {"images": images, "labels": labels, "names": list(batch["names"])}


# %% send right_not_in_place check=1 counted=2 hidden=1 race=2
def send(batch, mean, std, device):
    images = batch["images"].to(device, non_blocking=True).permute(0, 3, 1, 2)
    images = images * (1 / (255 * std)) - mean / std
    return {**batch, "images": images, "labels": batch["labels"].to(device, non_blocking=True)}
