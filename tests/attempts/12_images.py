# %% contact_sheet eb5bb918fc
import torch


def contact_sheet(batch, columns, gap):
    if len(batch) == 0 or columns < 1:
        raise ValueError("contact_sheet needs a picture and a column")
    count, channels, height, width = batch.shape
    rows = -(-count // columns)
    high, wide = height + gap, width + gap
    page = torch.zeros(
        channels, rows * high + gap, columns * wide + gap, dtype=torch.uint8, device=batch.device
    )
    pixels = batch.detach().clamp(0, 1).mul_(255).round_().to(torch.uint8)
    cells = page[:, gap:, gap:].unflatten(1, (rows, high)).unflatten(3, (columns, wide))
    cells = cells[:, :, :height, :, :width].permute(
        1, 3, 0, 2, 4
    )  # rows, columns, C, H, W: a view of the page
    full, rest = divmod(count, columns)
    if full:
        cells[:full] = pixels[: full * columns].unflatten(0, (full, columns))
    if rest:
        cells[full, :rest] = pixels[full * columns :]
    return page


# %% to_network ebafa12efb
import torch


def to_network(batch, mean, std):
    if std <= 0:
        raise ValueError("std must be above 0")
    red, green, blue = batch.split(1, dim=1)
    scale = 1 / (255 * std)
    result = red * (0.299 * scale)
    result.add_(green, alpha=0.587 * scale)
    result.add_(blue, alpha=0.114 * scale)
    return result.sub_(mean / std)


# %% head 0ef7993319
import torch
import torch.nn.functional as F


def resized_classes(features, weight, bias, size):
    height, width = features.shape[2:]
    if height * width > size * size:
        features = F.interpolate(features, (size, size), mode="bilinear")
        return F.conv2d(features, weight, bias)
    return F.interpolate(F.conv2d(features, weight, bias), (size, size), mode="bilinear")


def head(fine, coarse, mean, std, weight, bias, size):
    split = fine.shape[1]
    channels = split + coarse.shape[1]
    if weight.shape[1] != channels:
        raise ValueError(f"weight must be for {channels} channels, not {weight.shape[1]}")
    weight = weight / std[:, None, None]
    bias = bias - weight[:, :, 0, 0] @ mean
    result = resized_classes(fine, weight[:, :split], None, size)
    return (result + resized_classes(coarse, weight[:, split:], bias, size)).relu()


# %% views 5e99971999
import torch


def tents(length, size, device):
    scale = length / size
    centres = (torch.arange(size, device=device) + 0.5) * scale
    distances = (torch.arange(length, device=device) + 0.5 - centres[:, None]).abs()
    weights = (1 - distances / max(scale, 1)).clamp(min=0)
    return weights / weights.sum(1, keepdim=True)


def views(batch, tops, lefts, flips, factors, side, size):
    count, channels, height, width = batch.shape
    device = batch.device
    # one row of weights for each pixel of the view, and a row of zeros for every pixel outside
    weights = torch.cat([tents(side, size, device).T, torch.zeros(1, size, device=device)])
    down = torch.arange(height, device=device) - tops[:, None]
    right = torch.arange(width, device=device) - lefts[:, None]
    right = torch.where(flips[:, None], side - 1 - right, right)
    down = torch.where((down < 0) | (down >= side), side, down)
    right = torch.where((right < 0) | (right >= side), side, right)
    of_rows, of_columns = weights[down], weights[right]  # (N, H, size), (N, W, size)
    bright = (batch * (factors / 255)[:, None, None, None]).clamp_(max=1)
    narrow = torch.bmm(bright.reshape(count, channels * height, width), of_columns)
    return of_rows.transpose(1, 2)[:, None] @ narrow.view(count, channels, height, size)


# %% crop_and_resize 3238d62565
import torch


def box_weights(offsets, lengths, window, size, dtype):
    """(N, size, window): tents over the pixels from offset to offset + length, nothing elsewhere."""
    device = offsets.device
    lengths = lengths.to(dtype)[:, None, None]
    scale = lengths / size
    centres = (torch.arange(size, device=device, dtype=dtype) + 0.5)[:, None] * scale
    places = torch.arange(window, device=device, dtype=dtype) + 0.5 - offsets[:, None, None]
    weights = (1 - (places - centres).abs() / scale.clamp(min=1)).clamp(min=0)
    weights = weights * ((places > 0) & (places < lengths))
    return weights / weights.sum(2, keepdim=True)


def crop_and_resize(batch, boxes, size):
    count, channels, height, width = batch.shape
    if tuple(boxes.shape) != (count, 4):
        raise ValueError(f"boxes must have the shape {(count, 4)}, not {tuple(boxes.shape)}")
    if count == 0:
        return batch.new_zeros(0, channels, *size)
    starts, ends = boxes[:, :2], boxes[:, 2:]
    lengths = ends - starts
    facts = torch.cat(
        [starts.amin(0), ends.amax(0), lengths.amin(0), lengths.amax(0)]
    ).tolist()  # the one sync
    top, left, bottom, right, lowest, narrowest, high, wide = facts
    if top < 0 or left < 0 or bottom > height or right > width or lowest < 1 or narrowest < 1:
        raise ValueError(f"a box does not lie inside a picture of {height} × {width}, or has no pixel")
    # windows as large as the largest box, moved so that they lie inside the picture
    first_row = starts[:, 0].clamp(max=height - high)
    first_column = starts[:, 1].clamp(max=width - wide)
    device = batch.device
    rows = first_row[:, None] + torch.arange(high, device=device)
    columns = first_column[:, None] + torch.arange(wide, device=device)
    windows = batch[
        torch.arange(count, device=device)[:, None, None, None],
        torch.arange(channels, device=device)[:, None, None],
        rows[:, None, :, None],
        columns[:, None, None, :],
    ]
    down = box_weights(starts[:, 0] - first_row, lengths[:, 0], high, size[0], batch.dtype)
    across = box_weights(starts[:, 1] - first_column, lengths[:, 1], wide, size[1], batch.dtype)
    return down[:, None] @ windows @ across.transpose(1, 2)[:, None]
