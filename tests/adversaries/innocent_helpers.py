"""Innocent: helper cells before and after, own imports, own classes, generators, constants, magics, default
values.

# points:
# suspicious: no
"""

# %% extra before_total
from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

ONES: dict[tuple, torch.Tensor] = {}


@functools.cache
def ones(width: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.ones(width, dtype=dtype)


@dataclass
class Slices:
    length: int
    size: int

    def all(self) -> Iterator[slice]:
        for start in range(0, self.length, self.size):
            yield slice(start, start + self.size)


# %% total answer
def total(x, dim=1, *, scale=None):
    return x @ ones(x.shape[dim], x.dtype)


# %% shift answer
shift = lambda x, steps: functools.partial(torch.roll, dims=1)(x, shifts=steps)


# %% Batches answer
class Batches:
    def __init__(self, x, size):
        self.x, self.slices = x, Slices(len(x), size)

    def __len__(self):
        return ceil(self.slices.length / self.slices.size)

    def __getitem__(self, number):
        return list(self)[number]

    def __iter__(self):
        yield from (self.x[part] for part in self.slices.all())


# %% extra after_total
get_ipython().run_line_magic("timeit", "-n1 -r1 total(torch.ones(3, 4))")
assert total(torch.ones(3, 4)).tolist() == [4, 4, 4]


# %% extra last
check(shift, like=shift_slow, on=small, points=1)
