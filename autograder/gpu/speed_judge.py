"""What the judge of a notebook says about races of known ratio: how often it errs, and how long it takes."""

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


def races(device: str, each: int, load: str, done: Callable[[], bool]) -> dict[str, Any]:
    """``each`` races at every ratio; by ratio: races, wrong verdicts, undecided ones, seconds (median).

    ``load``: "quiet", or "busy" beside another process on the device. Stops early when ``done()``.
    """
    found: dict[str, Any] = {}
    with _beside(device, load):
        for ratio in RATIOS:
            words: list[str] = []
            taken: list[float] = []
            while len(words) < each and not done():
                start = time.perf_counter()
                words.append(_word(device, ratio))
                taken.append(time.perf_counter() - start)
            wrong = "slower" if ratio > 1 else "faster"
            found[f"{ratio:g}"] = {
                "races": len(words),
                "wrong": words.count(wrong),
                "undecided": words.count("undecided"),
                "seconds": round(median(taken), 2) if taken else None,
            }
    return found


def _word(device: str, ratio: float) -> str:
    """The verdict on an answer that is ``ratio * THRESHOLD`` times as fast as given, by doing less."""
    repeats = {"slow": round(REPEATS * THRESHOLD * ratio), "fast": REPEATS}

    def repeat(times: int) -> Callable[[torch.Tensor], torch.Tensor]:
        def work(x: torch.Tensor) -> torch.Tensor:
            for _ in range(times):
                x = x.mul(1.0001)
            return x

        return work

    def numbers(generator: torch.Generator, device: str) -> torch.Tensor:
        # Large enough that a launch costs nothing beside it, small enough for the caches of a CPU.
        return torch.ones(1 << (24 if device == "cuda" else 14), device=device)

    slow, fast = repeat(repeats["slow"]), repeat(repeats["fast"])
    return duel_here(slow, fast, numbers, threshold=THRESHOLD, device=device).word


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
