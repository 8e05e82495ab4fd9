"""Innocent: annotations, names that are looked up, attributes that are set, and what an object is made of.

# points:
# suspicious: no
"""

# %% total answer
import importlib
import inspect
from collections.abc import Callable
from typing import get_type_hints


def total(x: torch.Tensor) -> torch.Tensor:
    return importlib.import_module("torch").sum(x, dim=1)


print(inspect.signature(total), get_type_hints(total), sorted(vars(torch.Size))[:2], "total" in globals())


# %% shift answer
class Shift:
    times: int = 0

    def __call__(self, x: torch.Tensor, steps: int) -> torch.Tensor:
        for name in ("times",):
            setattr(self, name, self.__dict__.get(name, 0) + 1)
        return torch.roll(x, steps, dims=1)


shift: Callable = Shift()
