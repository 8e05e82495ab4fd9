# %% with_coordinates 25f4eaf3fe
import torch


def with_coordinates(images):
    n, c, height, width = images.shape
    like = {"dtype": images.dtype, "device": images.device}
    if images.is_contiguous(memory_format=torch.channels_last):
        result = torch.empty(n, c + 2, height, width, memory_format=torch.channels_last, **like)
    else:
        result = torch.empty(n, c + 2, height, width, **like)
    ys = torch.arange(height, device=images.device, dtype=torch.float64) * 2 / max(height - 1, 1) - 1
    xs = torch.arange(width, device=images.device, dtype=torch.float64) * 2 / max(width - 1, 1) - 1
    result[:, :c] = images
    result[:, c] = ys.to(images.dtype)[:, None]
    result[:, c + 1] = xs.to(images.dtype)
    return result


# %% positions b9777aad9d
import math

import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, length, width, scale, device=None):
        super().__init__()
        self.length = length
        self.register_buffer("scale", torch.tensor(scale, device=device))
        rows = []
        for p in range(length):
            row = []
            for i in range(width // 2):
                angle = p / 10000 ** (2 * i / width)
                row += [math.sin(angle), math.cos(angle)]
            rows.append(row)
        # plain attributes: neither .to nor to_empty may touch them
        self.exact = torch.tensor(rows, dtype=torch.float64, device="cpu")
        self.table = None

    def forward(self, x):
        n = x.shape[1]
        if n > self.length:
            raise ValueError(f"at most {self.length} positions, not {n}")
        if self.table is None or self.table.device != x.device or self.table.dtype != x.dtype:
            self.table = self.exact.to(x.dtype).to(x.device)
        return x * self.scale + self.table[:n]


# %% clip_rows ae340f3a6d
import torch


def clip_rows(rows, limit):
    norm = rows.norm(dim=1, keepdim=True)
    factor = limit / norm.clamp(min=limit)  # never a division by 0, so no NaN in the gradient
    return rows * torch.where(norm > limit, factor, 1)


# %% through_matrix dd0d2fe5da
import torch


def through_matrix(x, mask, weights, capacity):
    count = mask.cumsum(0, dtype=torch.int32)
    wanted = torch.arange(1, capacity + 1, device=x.device, dtype=torch.int32)
    places = torch.searchsorted(count, wanted)  # where the count first reaches k; N if it never does
    products = x[places.clamp(max=len(x) - 1)] @ weights
    return torch.where((places < len(x))[:, None], products, 0)


# %% move fd15ce6271
import torch


def move(batch, device):
    tensors = []

    def collect(item):
        if isinstance(item, dict):
            for value in item.values():
                collect(value)
        elif isinstance(item, (list, tuple)):
            for value in item:
                collect(value)
        elif isinstance(item, torch.Tensor):
            tensors.append(item)

    def key_of(tensor):
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()

    collect(batch)
    starts, pieces, total = {}, [], 0
    padding = torch.zeros(16, dtype=torch.uint8)
    for tensor in tensors:
        key = key_of(tensor)
        if tensor.numel() == 0 or key in starts:
            continue
        starts[key] = total
        pieces.append(torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()))
        rest = -key[1] % 16
        if rest:
            pieces.append(padding[:rest])
        total += key[1] + rest
    sent = torch.cat(pieces).to(device, non_blocking=True) if pieces else None

    def rebuild(item):
        if isinstance(item, dict):
            return {key: rebuild(value) for key, value in item.items()}
        if isinstance(item, (list, tuple)):
            return type(item)(rebuild(value) for value in item)
        if not isinstance(item, torch.Tensor):
            return item
        key = key_of(item)
        if key not in starts:
            return torch.empty_strided(item.size(), item.stride(), dtype=item.dtype, device=device)
        offset = starts[key] // item.element_size() + item.storage_offset()
        result = sent.view(item.dtype).as_strided(item.size(), item.stride(), offset)
        return result.conj() if item.is_conj() else result

    return rebuild(batch)
