"""Before a machine judges, it judges itself: the same function against itself must come out equal."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from statistics import median, stdev

import torch

from .duel import TooNoisy, interleave, log_ratios

# The promise of the verdict is about ratios 20 % from the threshold: noise of that size hides them.
MOST_NOISE = 0.2
TRIES = 3


@dataclass(frozen=True)
class Noise:
    """What identical functions showed: the spread (standard deviation) and median of their log-ratios."""

    spread: float
    bias: float
    when: str

    @property
    def too_much(self) -> bool:
        return max(self.spread, abs(self.bias)) > MOST_NOISE

    def __str__(self) -> str:
        low, high = math.exp(self.bias - self.spread), math.exp(self.bias + self.spread)
        return f"the same function against itself came out between {low:.2f}× and {high:.2f}×"


@functools.cache
def check_here() -> Noise:
    """Duel identical functions in this process, once a session. Raises TooNoisy as ``settle`` does."""

    def ratios() -> list[float]:
        samples = interleave({"one": _work, "same": _work}, _inputs, seconds=0.1)
        return log_ratios(samples.seconds("one"), samples.seconds("same"))

    return settle(ratios)


def settle(ratios: Callable[[], list[float]]) -> Noise:
    """Measure identical functions against each other: ``ratios()`` gives log-ratios.

    Raises TooNoisy where ``TRIES`` times in a row they show more noise than ``MOST_NOISE``.
    """
    for _ in range(TRIES):
        logs = ratios()
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        noise = Noise(stdev(logs), median(logs), now)
        if not noise.too_much:
            return noise
    said = f"this machine is too noisy to judge speed just now: {noise}."
    raise TooNoisy(f"{said} Close other programs, or wait, and try again.")


def _inputs(generator: torch.Generator, device: str) -> torch.Tensor:
    return torch.rand(128, 128, generator=generator)


def _work(matrix: torch.Tensor) -> torch.Tensor:
    return matrix @ matrix
