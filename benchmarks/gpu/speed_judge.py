"""What the judges say about races of known ratio: how often they err, and how long they take."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from autograder.judging.calls import AnswerError
from autograder.measuring.duel import DuelError, duel_here

THRESHOLD = 2.0
REPEATS = 20
# The true ratio over the one asked for.
RATIOS = (0.8, 0.9, 1.1, 1.25)
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


def one_race(verdict: Callable[[str, float], str], device: str, ratio: float) -> dict[str, Any]:
    """One race: its ``word``, and ``why`` where that is "refused" (a side could not be timed).

    ``verdict`` is ``word_in_notebook`` or ``word_apart``; ``errors`` is empty.
    """
    try:
        return {"word": verdict(device, ratio), "errors": []}
    except (DuelError, AnswerError) as error:
        return {"word": "refused", "why": str(error), "errors": []}


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


_PRODUCTS = """
import torch
def work(x):
    same = torch.eye(len(x), device=x.device)
    for _ in range({}):
        x = x @ same
    return x
"""


def word_apart(device: str, ratio: float) -> str:
    """The verdict of the judge outside the answer's process, on products that keep a GPU busy for 15 ms."""
    from autograder.gpu.device_judge import Work, judge_on_device  # needs more packages than the rest

    def matrix(generator: torch.Generator, device: str) -> torch.Tensor:
        size = 2048 if device == "cuda" else 128
        return torch.rand(size, size, generator=generator).to(device)

    given, answer = (Work([_PRODUCTS.format(repeats)], "work") for repeats in _repeats(2 * REPEATS, ratio))
    return judge_on_device(given, answer, matrix, threshold=THRESHOLD, device=device).word


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
def beside(device: str) -> Iterator[None]:
    """Another process that keeps the device busy."""
    command = [sys.executable, "-c", _BUSY, device]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            if not other.stdout.readline():
                raise RuntimeError("the process beside could not use the device.")
            yield
        finally:
            other.kill()
