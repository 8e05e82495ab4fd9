"""What comparisons are given: functions that make a function ``(generator, device) -> inputs``."""

from __future__ import annotations

from collections.abc import Callable

import torch

Inputs = Callable[[torch.Generator, str], object]


def tensors(*shapes: int | tuple[int, ...]) -> Inputs:
    """A tensor of random numbers from 0 to 1 of each shape."""
    return lambda generator, device: tuple(
        torch.rand(shape, generator=generator).to(device) for shape in shapes
    )


def normal(*shape: int) -> Inputs:
    """A tensor of normally distributed numbers: mean 0, standard deviation 1."""
    return lambda generator, device: torch.randn(shape, generator=generator).to(device)


def whole_numbers(below: int, *shape: int) -> Inputs:
    """A tensor of random whole numbers from 0 to ``below`` - 1, as int64."""
    return lambda generator, device: torch.randint(below, shape, generator=generator).to(device)


def in_groups(groups: int, *shape: int) -> Inputs:
    """A tensor of random numbers from 0 to 1, and for each of its rows the number of its group, as int64."""
    return lambda generator, device: (
        torch.rand(shape, generator=generator).to(device),
        torch.randint(groups, shape[:1], generator=generator).to(device),
    )
