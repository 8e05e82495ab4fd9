"""The smallest kernel in Triton: apart, because Triton reads its source and looks for names in its module."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _double(numbers, size: tl.constexpr):
    places = numbers + tl.arange(0, size)
    tl.store(places, 2 * tl.load(places))


def doubled(numbers: torch.Tensor) -> torch.Tensor:
    """``numbers``, whose number is a power of 2, doubled in place."""
    _double[(1,)](numbers, numbers.numel())
    return numbers
