# %% contact_sheet right_slow check=1 empty=1 hidden=2 race=0
def contact_sheet(batch, columns, gap):
    if len(batch) == 0 or columns < 1:
        raise ValueError("no page")
    count, channels, height, width = batch.shape
    rows = -(-count // columns)
    high, wide = rows * (height + gap) + gap, columns * (width + gap) + gap
    page = torch.zeros(channels, high, wide, dtype=batch.dtype, device=batch.device)
    for i in range(count):
        top = i // columns * (height + gap) + gap
        left = i % columns * (width + gap) + gap
        page[:, top : top + height, left : left + width] = batch[i]
    return page


# The page of the chapter, for full rows only; it does not look at the number of columns.
# %% contact_sheet wrong_fast check=0 empty=0 hidden=0 race=0
def contact_sheet(batch, columns, gap):
    rows = len(batch) // columns
    framed = F.pad(batch[: rows * columns], (gap, 0, gap, 0))
    c, h, w = framed.shape[1:]
    page = framed.view(rows, columns, c, h, w).permute(2, 0, 3, 1, 4).reshape(c, rows * h, columns * w)
    return F.pad(page, (0, gap, 0, gap))


# make_grid narrows a page that has fewer pictures than columns, and takes a single channel for grey.
# %% contact_sheet make_grid check=1 empty=1 hidden=0 race=0
def contact_sheet(batch, columns, gap):
    from torchvision.utils import make_grid

    if len(batch) == 0 or columns < 1:
        raise ValueError("no page")
    return make_grid(batch, nrow=columns, padding=gap)


# %% to_network right_slow check=1 zero=1 few=0 hidden=1 race=0
def to_network(batch, mean, std):
    if std <= 0:
        raise ValueError("std must be above 0")
    results = []
    for picture in batch:
        red, green, blue = picture.float() / 255
        grey = 0.299 * red + 0.587 * green + 0.114 * blue
        results.append(((grey - mean) / std)[None])
    return torch.stack(results)


# The mean of the channels is another grey.
# %% to_network wrong_fast check=0 zero=1 few=0 hidden=0 race=0
def to_network(batch, mean, std):
    if std <= 0:
        raise ValueError("std must be above 0")
    return (batch.float().mean(1, keepdim=True) / 255 - mean) / std


# All pictures at once, step by step: fast enough, but it makes too many passes over memory.
# %% to_network not_fused check=1 zero=1 few=0 hidden=1 race=2
def to_network(batch, mean, std):
    if std <= 0:
        raise ValueError("std must be above 0")
    red, green, blue = (batch.float() / 255).split(1, dim=1)
    return (0.299 * red + 0.587 * green + 0.114 * blue - mean) / std


# The third way of hint 2, without a tensor of weights.
# %% to_network in_place check=1 zero=1 few=1 hidden=1 race=2
def to_network(batch, mean, std):
    if std <= 0:
        raise ValueError("std must be above 0")
    red, green, blue = batch.split(1, dim=1)
    grey = red * (0.299 / (255 * std))
    return grey.add_(green, alpha=0.587 / (255 * std)).add_(blue, alpha=0.114 / (255 * std)).sub_(mean / std)


# %% crops right_slow check=1 gradients=1 range=1 hidden=1 race=0
def crops(batch, tops, lefts, size):
    height, width = batch.shape[2:]
    results = []
    for picture, top, left in zip(batch, tops.tolist(), lefts.tolist(), strict=True):
        if not (0 <= top <= height - size and 0 <= left <= width - size):
            raise IndexError(f"no {size} × {size} pixels at row {top}, column {left}")
        results.append(picture[:, top : top + size, left : left + size])
    return torch.stack(results)


# One place for all pictures, as a random transform takes it.
# %% crops wrong_fast check=0 gradients=0 range=0 hidden=0 race=0
def crops(batch, tops, lefts, size):
    top, left = int(tops[0]), int(lefts[0])
    return batch[:, :, top : top + size, left : left + size].clone()


# Flat positions reach into the next row instead of leaving the picture.
# %% crops unchecked check=1 gradients=1 range=0 hidden=1 race=0
def crops(batch, tops, lefts, size):
    width = batch.shape[3]
    steps = torch.arange(size, device=batch.device)
    pattern = (steps[:, None] * width + steps).flatten()
    positions = ((tops * width + lefts)[:, None, None] + pattern).clamp(0, batch.shape[2] * width - 1)
    pixels = batch.flatten(2).gather(2, positions.expand(-1, batch.shape[1], -1))
    return pixels.view(*batch.shape[:2], size, size)


# %% thumbnails right_slow check=1 empty=1 hidden=2 race=0
def thumbnails(pictures, size):
    if not pictures:
        raise ValueError("no pictures")
    results = []
    for picture in pictures:
        values = picture[None].float() / 255
        results.append(F.interpolate(values, (size, size), mode="bilinear", antialias=True))
    return torch.cat(results)


# Without antialias, and in the order of the groups.
# %% thumbnails wrong_fast check=0 empty=1 hidden=0 race=0
def thumbnails(pictures, size):
    groups = {}
    for picture in pictures:
        groups.setdefault(picture.shape, []).append(picture)
    if not groups:
        raise ValueError("no pictures")
    batches = [torch.stack(group).float() / 255 for group in groups.values()]
    return torch.cat([F.interpolate(batch, (size, size), mode="bilinear") for batch in batches])


# As in the chapter: resized in bytes, one step of 256 apart.
# %% thumbnails in_bytes check=0 empty=1 hidden=0 race=0
def thumbnails(pictures, size):
    groups = {}
    for i, picture in enumerate(pictures):
        groups.setdefault(picture.shape, []).append(i)
    if not groups:
        raise ValueError("no pictures")
    result = torch.empty(len(pictures), 3, size, size, dtype=torch.uint8, device=pictures[0].device)
    for positions in groups.values():
        batch = torch.stack([pictures[i] for i in positions])
        result[positions] = F.interpolate(batch, (size, size), mode="bilinear", antialias=True)
    return result / 255


# %% head right_slow check=1 gradients=1 weights=1 hidden=1 race=0
def head(fine, coarse, weight, bias, size):
    fine = F.interpolate(fine, (size, size), mode="bilinear")
    coarse = F.interpolate(coarse, (size, size), mode="bilinear")
    return F.conv2d(torch.cat([fine, coarse], dim=1), weight, bias)


# The bias is added twice.
# %% head wrong_fast check=0 gradients=0 weights=1 hidden=0 race=0
def head(fine, coarse, weight, bias, size):
    cut = fine.shape[1]
    of_fine = F.interpolate(F.conv2d(fine, weight[:, :cut], bias), (size, size), mode="bilinear")
    of_coarse = F.interpolate(F.conv2d(coarse, weight[:, cut:], bias), (size, size), mode="bilinear")
    return of_fine + of_coarse


# Right, but detached: nothing before the head learns.
# %% head detached check=1 gradients=0 weights=1 hidden=1 race=0
@torch.no_grad()
def head(fine, coarse, weight, bias, size):
    cut = fine.shape[1]
    of_fine = F.interpolate(F.conv2d(fine, weight[:, :cut], bias), (size, size), mode="bilinear")
    return of_fine + F.interpolate(F.conv2d(coarse, weight[:, cut:]), (size, size), mode="bilinear")
