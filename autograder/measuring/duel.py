"""Callables against each other in interleaved blocks: ratios with intervals, and a verdict on a threshold.

Both sides of every comparison are timed next to each other in time and in random order, because a busy
machine changes its speed from one second to the next, but rarely within a pair. The ratio is the median over
pairs (the median of log-ratios), with the distribution-free interval that order statistics give.
"""

from __future__ import annotations

import math
import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from .clocks import Block, calibrate, default_clock, run_block, threads

# Seven rounds are the fewest whose smallest and largest ratio enclose the median with 98 % confidence.
FEWEST_ROUNDS = 7
MOST_ROUNDS = 101


@dataclass(frozen=True)
class Ratio:
    """How many times faster, with an interval that holds the true median with at least 95 % confidence."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Samples:
    """Blocks by name, one of each name per round; ``clock`` is the one that ratios are taken on."""

    blocks: dict[str, list[Block]]
    clock: str
    device: str

    def seconds(self, name: str) -> list[float]:
        """Seconds per call of one side, a figure a round."""
        return [block.per_call(self.clock) for block in self.blocks[name]]

    def ratio(self, slow: str, fast: str) -> Ratio:
        """How many times faster ``fast`` is than ``slow``."""
        return ratio_of(self.seconds(slow), self.seconds(fast))


def ratio_of(slow: Sequence[float], fast: Sequence[float]) -> Ratio:
    """The median of paired ratios slow / fast, with a distribution-free 95 % interval.

    ``slow[i]`` and ``fast[i]`` (seconds) were taken next to each other. The interval is the one that order
    statistics give for a median (Conover, Practical Nonparametric Statistics, section 3.2).
    """
    tick = 1e-9
    ratios = sorted(max(a, tick) / max(b, tick) for a, b in zip(slow, fast, strict=True))
    outside = _order_statistic(len(ratios))
    middle = math.exp(median(math.log(ratio) for ratio in ratios))
    return Ratio(middle, ratios[outside], ratios[-1 - outside])


def _order_statistic(number: int, error: float = 0.05) -> int:
    """The largest k such that the k-th smallest and k-th largest of ``number`` enclose the median."""
    tail, k = 0.5**number, 0
    while 2 * (tail := tail + math.comb(number, k + 1) * 0.5**number) <= error:
        k += 1
    return k


def interleave(
    functions: Mapping[str, Callable],
    inputs: Callable[[torch.Generator, str], object],
    *,
    device: str = "cpu",
    clock: str | None = None,
    seconds: float = 1.0,
    num_threads: int | None = 1,
) -> Samples:
    """Time several callables in one process, in rounds of one block each, in random order.

    ``inputs(generator, device)`` makes the arguments: a tuple, or one value. It is called anew for every
    block, outside the timed part; within a round all callables get equal contents. ``seconds`` is the
    budget of wall time; there are at least ``FEWEST_ROUNDS`` rounds, whatever they take.
    """
    clock = clock or default_clock(device)
    with threads(num_threads):
        calls = {
            name: calibrate(function, arguments(inputs, secrets.randbits(63), device), device)
            for name, function in functions.items()
        }
        blocks: dict[str, list[Block]] = {name: [] for name in functions}
        deadline = time.perf_counter() + seconds
        order = list(functions)
        for done in range(MOST_ROUNDS):
            if done >= FEWEST_ROUNDS and time.perf_counter() > deadline:
                break
            random.shuffle(order)
            seed = secrets.randbits(63)
            for name in order:
                fresh = arguments(inputs, seed, device)
                blocks[name].append(run_block(functions[name], fresh, calls[name], device))
    return Samples(blocks, clock, device)


def arguments(inputs: Callable[[torch.Generator, str], object], seed: int, device: str) -> tuple:
    """Fresh arguments for one block: what ``inputs`` makes with a generator on the CPU seeded by ``seed``."""
    made = inputs(torch.Generator().manual_seed(seed), device)
    return made if isinstance(made, tuple) else (made,)
