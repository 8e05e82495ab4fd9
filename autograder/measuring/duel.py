"""Callables against each other in interleaved blocks: ratios with intervals, and a verdict on a threshold.

Both sides of every comparison are timed next to each other in time and in random order, because a busy
machine changes its speed from one second to the next, but rarely within a pair. The ratio is the median over
pairs (the median of log-ratios), with the distribution-free interval that order statistics give.
"""

import math
import platform
import random
import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from typing import Any

import torch

from .clocks import Block, Function, Inputs, calibrate, default_clock, present, run_block, threads
from .decide import Word
from .settings import alone, longest

# Seven rounds are the fewest whose smallest and largest ratio enclose the median with 98 % confidence.
FEWEST_ROUNDS = 7
MOST_ROUNDS = 101
LONGEST_CALL = 2.0
# Seconds that a GPU lets one wait before a block, where something else works on it. Alone it was 0.02 to 0.11
# ms on an H200, beside others from 0.16 ms. Drivers on Windows send off their work in batches.
WAITED = 0.15e-3 if sys.platform == "linux" and "microsoft" not in platform.release() else 1e-3
SHARED = "something else works on this GPU; nvidia-smi shows who has memory there."
TRY_LATER = f"{SHARED} It cannot judge speed just now: wait, or end that, and try again."


@dataclass(frozen=True)
class Ratio:
    """How many times faster, with an interval that holds the true median with at least 95 % confidence.

    Of fewer than six figures it is their whole range: of five, 94 %.
    """

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Side:
    """A function to time, on random numbers of a shape, or on what ``inputs(generator, device)`` makes.

    ``around`` holds while a block of it runs, off the clock. ``warm``: it follows a call that does not count.
    ``elsewhere``: another process runs its blocks.
    """

    function: Function
    inputs: Inputs
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    warm: bool = False
    elsewhere: Callable[[int, int, str], Block] | None = None

    def call(self, seed: int, device: str) -> object:
        """Its result, off any clock."""
        given = fresh_inputs(self.inputs, seed, device)
        with self.around():
            return self.function(*given)

    def block(self, seed: int, calls: int, device: str) -> Block:
        """So many calls on fresh inputs, timed."""
        if self.elsewhere:
            return self.elsewhere(seed, calls, device)
        given = fresh_inputs(self.inputs, seed, device)
        with self.around():
            if self.warm:
                self.function(*given)
            return run_block(self.function, given, calls, device)


@dataclass(frozen=True)
class Samples:
    """Blocks by name, one of each name per round; ``clock`` is the one that ratios are taken on."""

    blocks: dict[str, list[Block]]
    clock: str

    @property
    def shared(self) -> bool:
        """Whether something else worked on the GPU during a quarter of the blocks, or more."""
        waits = [block.waited > WAITED for each in self.blocks.values() for block in each]
        return 4 * sum(waits) >= len(waits)

    def seconds(self, name: str) -> list[float]:
        """Seconds per call of one side, a figure a round."""
        return [block.per_call(self.clock) for block in self.blocks[name]]

    def ratio(self, slow: str, fast: str) -> Ratio:
        """How many times faster ``fast`` is than ``slow``."""
        return ratio_of_logs(log_ratios(self.seconds(slow), self.seconds(fast)))


@dataclass(frozen=True)
class Verdict:
    """The end of a duel: is the second side ``threshold`` times as fast as the first?

    ``word`` is "faster" (yes), "slower" (no) or "undecided". ``seconds`` keeps the samples: seconds per call
    by side, on ``clock``. ``logs`` holds the log-ratios that the verdict rests on, one a pair or a launch;
    ``thrown_away`` launches do not count, because something beside them made a side slow. ``signs_only``:
    launches strayed so often on this machine that only their signs counted (see ``decide``).
    """

    word: Word
    ratio: Ratio
    threshold: float
    seconds: dict[str, list[float]]
    clock: str
    logs: list[float]
    thrown_away: int = 0
    signs_only: bool = False


class DuelError(Exception):
    """A side that cannot be timed; the message is one sentence that says which and why."""


class TooNoisy(DuelError):
    """This machine cannot judge just now; the message says what was seen and what to do."""


def duel_here(
    slow: Function,
    fast: Function,
    inputs: Inputs,
    *,
    threshold: float,
    device: str = "cpu",
    seconds: float = 0.6,
) -> Verdict:
    """Whether ``fast`` is ``threshold`` times as fast as ``slow``, all in this process.

    The setting for a notebook: an honest estimate in about ``seconds``; a close one gets three times that.
    The verdict is "faster" or "slower" where the 95 % interval lies on one side of the threshold. Raises
    DuelError for a device that is not here or a side that is too slow to be timed, TooNoisy where something
    else works on the GPU: its turns are milliseconds long, as a block is, so that the ratio is not that of
    the two.
    """
    sides = {"slow": Side(slow, inputs), "fast": Side(fast, inputs)}
    for budget in (seconds, 3 * seconds):
        samples = interleave(sides, device=device, seconds=budget)
        if samples.shared:
            raise TooNoisy(TRY_LATER)
        ratio = samples.ratio("slow", "fast")
        word: Word = (
            "faster" if ratio.low >= threshold else "slower" if ratio.high < threshold else "undecided"
        )
        if word != "undecided":
            break
    taken = {name: samples.seconds(name) for name in sides}
    return Verdict(word, ratio, threshold, taken, samples.clock, log_ratios(taken["slow"], taken["fast"]))


def ratio_of(slow: Sequence[float], fast: Sequence[float], processes: Sequence[int] = ()) -> Ratio:
    """The median of paired ratios slow / fast, with a distribution-free 95 % interval.

    ``slow[i]`` and ``fast[i]`` (seconds) were taken next to each other. ``processes``: so many pairs are each
    process's, in this order. Of more than one, each counts as a single figure, its median, because they
    differ by more than their pairs do.
    """
    logs = log_ratios(slow, fast)
    if len(processes) > 1:
        ends = zip(processes, accumulate(processes), strict=True)
        logs = [median(logs[end - own : end]) for own, end in ends]
    return ratio_of_logs(logs)


def log_ratios(slow: Sequence[float], fast: Sequence[float]) -> list[float]:
    """log(slow / fast) of each pair (seconds), taken next to each other; below a nanosecond counts as one."""
    tick = 1e-9
    return [math.log(max(a, tick) / max(b, tick)) for a, b in zip(slow, fast, strict=True)]


def ratio_of_logs(logs: Sequence[float]) -> Ratio:
    """The median of log-ratios as a ratio, with the interval that order statistics give for it.

    At least 95 % confidence (Conover, Practical Nonparametric Statistics, section 3.2); fewer than six values
    give their whole range.
    """
    return Ratio(*map(math.exp, median_and_interval(logs)))


def median_and_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The median, and both ends of that interval."""
    values, number, outside = sorted(values), len(values), 0
    tail = 0.5**number  # the probability that the median lies beyond the value at an end; two ends, and 5 %
    while 2 * (tail := tail + math.comb(number, outside + 1) * 0.5**number) <= 0.05:
        outside += 1
    return median(values), values[outside], values[-1 - outside]


def interleave(
    sides: Mapping[str, Side],
    *,
    device: str = "cpu",
    clock: str | None = None,
    seconds: float = 1.0,
    num_threads: int | None = 1,
    fewest: int = FEWEST_ROUNDS,
) -> Samples:
    """Time several callables in one process, in rounds of one block each, in random order.

    Their inputs are made anew for every block, outside the timed part; where all have the same ``inputs``,
    they get equal contents within a round. ``seconds`` is the budget of wall time, at most
    ``settings.longest(device)``; there are at least ``fewest`` rounds, whatever they take. Where that is 0, a
    block is one call. Raises DuelError for a device that is not here, and for a callable that takes more than
    ``LONGEST_CALL`` seconds.
    """
    if device not in present():
        raise DuelError(f"there is no {device} device here.")
    clock = clock or default_clock(device)
    most = longest(device)
    with threads(num_threads), alone():
        calls = dict.fromkeys(sides, 1)
        for name, side in sides.items() if most > 0 else ():
            given = fresh_inputs(side.inputs, secrets.randbits(63), device)
            with side.around():
                calls[name] = _calls(name, side.function, given, device, clock)
        # What a block costs once, whatever its length, must weigh on those that are nearly equal alike.
        counts = calls.values()
        calls = {name: max(n for n in counts if n <= 2 * number) for name, number in calls.items()}
        blocks: dict[str, list[Block]] = {name: [] for name in sides}
        deadline = time.perf_counter() + min(seconds, most)
        order = list(sides)
        for done in range(MOST_ROUNDS):
            if done >= fewest and time.perf_counter() > deadline:
                break
            random.SystemRandom().shuffle(order)  # whatever the functions seed
            seed = secrets.randbits(63)
            for name in order:
                blocks[name].append(sides[name].block(seed, calls[name], device))
    return Samples(blocks, clock)


def _calls(name: str, function: Function, given: tuple[object, ...], device: str, clock: str) -> int:
    for _ in range(2):  # the first call may load what the next one finds loaded
        once = run_block(function, given, 1, device).wall
        if once <= LONGEST_CALL:
            return calibrate(function, given, device, clock)
    most = f"at most {LONGEST_CALL:g} s can be timed here"
    raise DuelError(f"{name!r} takes {once:.1f} s for one call; {most}.")


def fresh_inputs(inputs: Inputs, seed: int, device: str) -> tuple[Any, ...]:
    """Fresh arguments for one block: what ``inputs`` makes with a generator on the CPU seeded by ``seed``, or
    random numbers from 0 to 1 of that shape.
    """
    generator = torch.Generator().manual_seed(seed)
    if not callable(inputs):
        return (torch.rand(inputs, generator=generator).to(device),)
    made = inputs(generator, device)
    return made if isinstance(made, tuple) else (made,)
