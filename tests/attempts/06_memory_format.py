# %% strides b0c50ab449
ORDERS = {
    ("channels_last", 4): (0, 2, 3, 1),
    ("channels_last_3d", 5): (0, 2, 3, 4, 1),
}


def strides(shape, memory_format):
    if memory_format == "contiguous_format":
        order = tuple(range(len(shape)))
    elif (memory_format, len(shape)) in ORDERS:
        order = ORDERS[memory_format, len(shape)]
    else:
        raise ValueError(f"{memory_format} does not fit {len(shape)} dimensions")
    result = [1] * len(shape)
    step = 1
    for dimension in reversed(order):
        result[dimension] = step
        step *= shape[dimension]
    return tuple(result)


# %% smooth 7de0ffdb84
import torch


def smooth(signals, amount):
    if not 0 <= amount <= 1:
        raise ValueError(f"amount must be from 0 to 1, not {amount}")
    # clone, not contiguous: contiguous would give the signals themselves where they are transposed already
    moments = signals.t().clone(memory_format=torch.contiguous_format)
    rows = moments.unbind(0)
    rows[0].mul_(amount)
    for previous, row in zip(rows, rows[1:]):
        torch.lerp(previous, row, amount, out=row)
    return moments.t()


# %% collate 3eb047a5ca
import torch


def collate(pictures, mean, std):
    channels = len(mean)
    for picture in pictures:
        if picture.shape[2] != channels:
            raise ValueError(f"{picture.shape[2]} channels, but {channels} means")
    height = max(picture.shape[0] for picture in pictures)
    width = max(picture.shape[1] for picture in pictures)
    # A row of a picture is width * channels numbers side by side, so the factors are repeated along a row.
    factor = (1 / (255 * std)).repeat(width)
    shift = (mean / std).repeat(width)
    pixels = torch.zeros(len(pictures), height, width, channels, device=mean.device)
    rows = pixels.view(len(pictures), height, width * channels)
    for i, picture in enumerate(pictures):
        h, w, _ = picture.shape
        pixels[i, :h, :w].copy_(picture)
        length = w * channels
        rows[i, :h, :length].mul_(factor[:length]).sub_(shift[:length])
    batch = pixels.permute(0, 3, 1, 2)
    return batch, batch.stride()


# %% enlarge 41add4125f
import torch
import torch.nn.functional as F


def enlarge(images, channels):
    # index_select along the last dimension gives a contiguous N, H, W, K, which is N, K, H, W in channels_last
    picked = images.permute(0, 2, 3, 1).index_select(3, channels).permute(0, 3, 1, 2)
    # the maximum of a square is the maximum of a column of maxima of rows
    peaks = F.max_pool2d(picked, (1, 21), stride=1, padding=(0, 10))
    peaks = F.max_pool2d(peaks, (21, 1), stride=1, padding=(10, 0))
    kept = torch.where(picked < peaks, -9.0, picked)
    shares = kept.permute(0, 2, 3, 1).softmax(-1).permute(0, 3, 1, 2)
    large = F.interpolate(shares, scale_factor=2, mode="bilinear")
    large = large.to(memory_format=torch.channels_last)
    return large, large.stride()


# %% convert 6a2d30a187
import torch

FORMATS = {
    4: (torch.channels_last, (0, 2, 3, 1)),
    5: (torch.channels_last_3d, (0, 2, 3, 4, 1)),
}


def convert(arrays):
    tensors = {}
    moved = {}
    for name, array in arrays.items():
        tensor = torch.from_numpy(array)
        if tensor.ndim in FORMATS:
            memory_format, order = FORMATS[tensor.ndim]
            wanted = [1] * tensor.ndim
            step = 1
            for dimension in reversed(order):
                wanted[dimension] = step
                step *= tensor.shape[dimension]
            fits = all(
                size == 1 or stride == want
                for size, stride, want in zip(tensor.shape, tensor.stride(), wanted)
            )
            if fits:
                tensor = tensor.as_strided(tensor.shape, wanted)
            else:
                key = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
                if key not in moved:
                    moved[key] = tensor.to(memory_format=memory_format, copy=True)
                tensor = moved[key]
        tensors[name] = tensor
    return tensors, {name: tensor.stride() for name, tensor in tensors.items()}
