"""What the judges say about races of known ratio: how often they err, and how long they take."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import torch

from ..measuring.duel import duel_here
from .device_judge import Work, judge_on_device

THRESHOLD = 2.0
REPEATS = 20
# The true ratio over the one asked for.
RATIOS = (0.8, 0.9, 1.1, 1.25)
LOADS = ("quiet", "busy")
# Another process that uses the device without a pause, until its parent ends it.
_BUSY = """
import sys, torch
a = torch.rand(4096 if sys.argv[1] == "cuda" else 512, 4096, device=sys.argv[1])
print("ready", flush=True)
while True:
    for _ in range(20):
        a @ a.T
    if a.is_cuda:
        torch.cuda.synchronize()
"""


def races(
    verdict: Callable[[str, float], str], device: str, each: int, load: str, done: Callable[[], bool]
) -> dict[str, Any]:
    """``each`` races at every ratio; by ratio: races, wrong verdicts, undecided ones, seconds (median).

    ``verdict`` is ``word_in_notebook`` or ``word_apart``. ``load``: "quiet", or "busy" beside another process
    on the device. Stops early when ``done()``.
    """
    found: dict[str, Any] = {}
    with _beside(device, load):
        for ratio in RATIOS:
            words: list[str] = []
            taken: list[float] = []
            while len(words) < each and not done():
                start = time.perf_counter()
                words.append(verdict(device, ratio))
                taken.append(time.perf_counter() - start)
            wrong = "slower" if ratio > 1 else "faster"
            found[f"{ratio:g}"] = {
                "races": len(words),
                "wrong": words.count(wrong),
                "undecided": words.count("undecided"),
                "seconds": round(median(taken), 2) if taken else None,
            }
    return found


_CELL = """
def work(x):
    for _ in range({}):
        x = x.mul(1.0)
    return x
"""


def word_in_notebook(device: str, ratio: float) -> str:
    """The verdict that a student sees, on an answer that is ``ratio * THRESHOLD`` times as fast as given."""
    given, answer = (_function(_CELL.format(repeats)) for repeats in _repeats(REPEATS, ratio))
    # Large enough that a launch costs nothing beside it, small enough for the caches of a CPU.
    numbers = _numbers(1 << (24 if device == "cuda" else 14))
    return duel_here(given, answer, numbers, threshold=THRESHOLD, device=device).word


def word_apart(device: str, ratio: float) -> str:
    """The verdict of the judge outside the answer's process, on the same, with more work in a call."""
    given, answer = (Work([_CELL.format(repeats)], "work") for repeats in _repeats(20 * REPEATS, ratio))
    return judge_on_device(
        given, answer, _numbers(1 << (22 if device == "cuda" else 14)), threshold=THRESHOLD, device=device
    ).word


def _repeats(fast: int, ratio: float) -> tuple[int, int]:
    """How often the given version and the answer do the same: the answer is faster by doing less."""
    return round(fast * THRESHOLD * ratio), fast


def _function(cell: str) -> Callable[[torch.Tensor], torch.Tensor]:
    names: dict[str, Any] = {}
    exec(cell, names)
    work: Callable[[torch.Tensor], torch.Tensor] = names["work"]
    return work


def _numbers(size: int) -> Callable[[torch.Generator, str], torch.Tensor]:
    return lambda generator, device: torch.rand(size, generator=generator).to(device)


@contextmanager
def _beside(device: str, load: str) -> Iterator[None]:
    if load == "quiet":
        yield
        return
    command = [sys.executable, "-c", _BUSY, device]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            other.stdout.readline()
            yield
        finally:
            other.kill()
