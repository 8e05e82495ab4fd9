"""Innocent: a dataset as torch has them, with an ordered mapping inside; a named tuple; mappings that count.

# points:
# suspicious: no
"""

# %% shift answer
from collections import Counter, OrderedDict, defaultdict
from typing import NamedTuple


class Move(NamedTuple):
    shifts: int
    dims: int


moves = defaultdict(Counter)


def shift(x, steps):
    moves[x.dtype][steps] += 1
    return torch.roll(x, **Move(steps, 1)._asdict())


# %% Batches answer
from torch.utils.data import Dataset


class Batches(Dataset):
    def __init__(self, x, size):
        self.parts = OrderedDict(enumerate(x.split(size)))

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, number):
        try:
            return self.parts[number]
        except KeyError:
            raise IndexError(number) from None
