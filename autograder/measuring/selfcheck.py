"""Before a machine judges, it judges itself: the same function against itself must come out equal."""

import functools
import math
from collections.abc import Callable
from datetime import datetime, timezone
from statistics import median, stdev
from typing import Any

import torch

from .duel import Side, TooNoisy, interleave, log_ratios

# The promise of the verdict is about ratios 20 % from the threshold: noise of that size hides them.
MOST_NOISE = 0.2
TRIES = 3


@functools.cache
def check_here() -> None:
    """Duel identical functions in this process, once a session. Raises TooNoisy as ``settle`` does."""

    def ratios() -> list[float]:
        samples = interleave(dict.fromkeys(("one", "same"), Side(_work, matrix)), seconds=0.1)
        return log_ratios(samples.seconds("one"), samples.seconds("same"))

    settle(ratios)


def settle(ratios: Callable[[], list[float]]) -> dict[str, Any]:
    """Measure identical functions against each other: ``ratios()`` gives log-ratios.

    Gives their "spread" (standard deviation), their "bias" (median), and "when" that was. Raises TooNoisy
    where ``TRIES`` times in a row one of the two is more than ``MOST_NOISE``.
    """
    for _ in range(TRIES):
        logs = ratios()
        spread, bias = stdev(logs), median(logs)
        if max(spread, abs(bias)) <= MOST_NOISE:
            when = datetime.now(timezone.utc).isoformat(timespec="seconds")
            return {"spread": spread, "bias": bias, "when": when}
    low, high = math.exp(bias - spread), math.exp(bias + spread)
    said = f"the same function against itself came out between {low:.2f}× and {high:.2f}×."
    said = f"this machine is too noisy to judge speed just now: {said}"
    raise TooNoisy(f"{said} Close other programs, or wait, and try again.")


def matrix(generator: torch.Generator, device: str) -> torch.Tensor:
    """The inputs of a call."""
    return torch.rand(128, 128, generator=generator)


def _work(given: torch.Tensor) -> torch.Tensor:
    return given @ given
