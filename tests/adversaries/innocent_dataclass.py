"""Innocent: a frozen dataclass with slots in place of a class, a callable object with slots, one without a
hash, a `functools.partial`.

# points:
# suspicious: no
"""


# %% total answer
class Total:
    __slots__ = ("dim",)

    def __init__(self, dim):
        self.dim = dim

    def __call__(self, x):
        return x.sum(dim=self.dim)


total = Total(1)


# %% shift answer
from dataclasses import dataclass, field
from functools import partial


@dataclass
class Roll:
    dims: int

    def __call__(self, x, steps):
        return partial(torch.roll, dims=self.dims)(x, steps)


shift = Roll(dims=1)


# %% Batches answer
@dataclass(frozen=True, slots=True)
class Batches:
    x: torch.Tensor
    size: int
    parts: list = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "parts", self.x.split(self.size))

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, number):
        return self.parts[number]
