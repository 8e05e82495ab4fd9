# %% one_hot 18cb57219a
import torch


def one_hot(labels, classes):
    if labels.device.type != "cpu" and bool(((labels < 0) | (labels >= classes)).any()):
        raise IndexError(
            f"a label is not in 0 to {classes - 1}"
        )  # on a GPU, scatter_ would break the context
    table = torch.zeros(len(labels), classes, device=labels.device)
    return table.scatter_(1, labels[:, None], 1.0)  # on the CPU, it refuses wrong labels


# %% positional_table d5778541f2
import math

import torch


def positional_table(length, width, base, device):
    if width % 2:
        raise ValueError(f"width must be even, not {width}")
    # p = block * a + b: few sines of block * a and of b, and one complex product for each place
    block = math.isqrt(length - 1) + 1
    blocks = -(-length // block)
    frequencies = base ** (torch.arange(0, width, 2, dtype=torch.float64, device=device) / -width)
    small = torch.arange(block, dtype=torch.float64, device=device)[:, None] * frequencies
    large = torch.arange(0, blocks * block, block, dtype=torch.float64, device=device)[:, None] * frequencies
    first = torch.complex(large.sin().float(), large.cos().float())  # sin a + i cos a
    second = torch.complex(small.cos().float(), -small.sin().float())  # cos b - i sin b
    table = first[:, None] * second  # sin (a + b) + i cos (a + b)
    return torch.view_as_real(table).reshape(-1, width)[:length]


# %% wrap d8b93fd9f9
import torch


def wrap(array):
    if array.dtype.kind not in "biufc":
        raise TypeError(f"wrap takes numbers, not {array.dtype}")
    if array.flags.writeable:
        try:
            return torch.from_numpy(array)
        except ValueError:
            pass  # negative strides, byte order, strides that are no multiple of the element
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), order="C", copy=True))


# %% stack_images 1ef8d94588
import numpy as np
import torch


def stack_images(images):
    batch = torch.from_numpy(np.stack(images))  # raises ValueError for no pictures, or for two sizes
    return batch.permute(0, 3, 1, 2).float().div_(255)


# %% pad 597dd0e322
import torch


def pad(rows, value):
    if not rows:
        raise ValueError("pad needs one row or more")
    lengths = [len(row) for row in rows]
    longest = max(lengths)
    batch = rows[0].new_full((len(rows), longest), value)
    lengths = torch.tensor(lengths, device=batch.device)
    taken = torch.arange(longest, device=batch.device) < lengths[:, None]
    return batch.masked_scatter_(taken, torch.cat(rows))


# %% rows 691b6be9c3
import torch


class Rows:
    def __init__(self, width, dtype, device):
        self.room = torch.empty(0, width, dtype=dtype, device=device)
        self.number = 0

    def append(self, rows):
        if rows.ndim != 2 or rows.shape[1] != self.room.shape[1] or rows.dtype != self.room.dtype:
            raise ValueError(f"these rows are of shape {tuple(rows.shape)} and {rows.dtype}")
        needed = self.number + len(rows)
        if needed > len(self.room):
            larger = self.room.new_empty(max(needed, 2 * len(self.room)), self.room.shape[1])
            larger[: self.number] = self.room[: self.number]
            self.room = larger
        self.room[self.number : needed] = rows
        self.number = needed

    def all(self):
        return self.room[: self.number]
