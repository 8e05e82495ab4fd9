"""The grading setting's evidence: both sides forked from this warm process, taking turns on the same core.

The same code in two processes can differ by tens of per cent, for as long as they live: it depends on where
memory came to lie, and on the core. So the unit of evidence is the launch: fork both sides in random order,
warm up, time a few pairs, keep one ratio. The side whose turn it is not stays stopped. The judge reads the
kernel's CPU clock of a side from outside while that side is stopped; a running process's clock can be a tick
old. Linux only.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import random
import secrets
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import median

import torch

from .clocks import calls_for_a_block
from .decide import SignTest
from .duel import DuelError, Verdict, arguments, check_threshold, log_ratios, ratio_of_logs

PAIRS = 3
WARM_UPS = 2
CALL_SECONDS = 10.0
MOST_LAUNCHES = 80

_COMMAND = struct.Struct("<QI")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_MMAP_THRESHOLD = 32 << 20


@dataclass(frozen=True)
class Launch:
    """CPU and wall seconds per call of each side, a figure a pair, from one fork of both sides."""

    cpu: dict[str, list[float]]
    wall: dict[str, list[float]]

    def log_ratio(self, slow: str, fast: str) -> float:
        """The median over pairs of log(slow / fast), on the CPU clock."""
        return median(log_ratios(self.cpu[slow], self.cpu[fast]))


def warm_up_parent() -> None:
    """Make this process fit to be forked: one torch thread, and malloc's thresholds pinned.

    Raises DuelError where it already has threads: a child forked from it could hang.
    """
    if not sys.platform.startswith("linux"):
        raise DuelError("launches need Linux: they read another process's CPU clock.")
    torch.set_num_threads(1)
    running = len(os.listdir("/proc/self/task"))
    if running > 1:
        raise DuelError(
            f"this process has {running} threads, so it cannot be forked safely. "
            "Set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1 before Python starts, and use no torch threads."
        )
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
    libc.mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)


@contextmanager
def apart() -> Iterator[int | None]:
    """Keep the judge off the core that the sides run on; give that core, or None where nobody can pin."""
    before = os.sched_getaffinity(0)
    core = max(before)
    try:
        if len(before) > 1:
            os.sched_setaffinity(0, before - {core})
        yield core
    except PermissionError:
        yield None
    finally:
        with suppress(PermissionError):
            os.sched_setaffinity(0, before)


def duel_in_launches(
    slow: Callable,
    fast: Callable,
    inputs: Callable,
    *,
    threshold: float,
    error: float = 1e-3,
    most_launches: int = MOST_LAUNCHES,
    pairs: int = PAIRS,
    call_seconds: float = CALL_SECONDS,
) -> Verdict:
    """Whether ``fast`` is ``threshold`` times as fast as ``slow`` on the CPU, with a bound on errors.

    The setting for grading: after every launch a sequential sign test looks at the ratio; the verdict is
    "faster" or "slower" as soon as its evidence reaches 1 / ``error``, so that each kind of wrong verdict has
    a probability of at most ``error``; after ``most_launches`` it is "undecided". Call ``warm_up_parent``
    once before. Raises ValueError for a threshold of 0 or below, DuelError where a side cannot be timed.
    """
    check_threshold(threshold)
    sides = {"slow": slow, "fast": fast}
    test = SignTest()
    calls: dict[str, int] = {}
    launches: list[Launch] = []
    with apart() as core:
        while len(launches) < most_launches and test.word(error) == "undecided":
            launches.append(launch(sides, inputs, calls, core, pairs=pairs, call_seconds=call_seconds))
            test.add(launches[-1].log_ratio("slow", "fast") - math.log(threshold))
    logs = [one.log_ratio("slow", "fast") for one in launches]
    seconds = {name: [value for one in launches for value in one.cpu[name]] for name in sides}
    return Verdict(test.word(error), ratio_of_logs(logs), threshold, seconds, "cpu", logs)


def launch(
    sides: Mapping[str, Callable],
    inputs: Callable,
    calls: dict[str, int],
    core: int | None,
    *,
    pairs: int = PAIRS,
    call_seconds: float = CALL_SECONDS,
) -> Launch:
    """Fork the sides in random order, warm them up, time ``pairs`` pairs of blocks, and end them.

    ``calls`` says how many calls make a block of each side; missing ones are calibrated here and filled in.
    Raises DuelError where a side raises, ends, or takes more than ``call_seconds`` for one call.
    """
    names = random.sample(list(sides), len(sides))
    workers: dict[str, _Worker] = {}
    result = Launch({name: [] for name in names}, {name: [] for name in names})
    try:
        for name in names:
            workers[name] = _Worker(name, sides[name], inputs, core, call_seconds)
        for name in names:
            if name not in calls:
                calls[name] = _calibrate(workers[name])
        for number in range(WARM_UPS + pairs):
            seed = secrets.randbits(63)
            for name in random.sample(names, len(names)):
                cpu, wall = workers[name].block(seed, calls[name])
                if number >= WARM_UPS:
                    result.cpu[name].append(cpu / calls[name])
                    result.wall[name].append(wall / calls[name])
    finally:
        for worker in workers.values():
            worker.end()
    return result


def _calibrate(worker: _Worker) -> int:
    """The number of calls that keeps a side busy for a block's worth of CPU time; warms it up."""
    worker.block(secrets.randbits(63), 1)
    return calls_for_a_block(lambda calls: worker.block(secrets.randbits(63), calls)[0])


class _Worker:
    """One side in a process of its own, stopped whenever it has nothing to do."""

    def __init__(
        self, name: str, function: Callable, inputs: Callable, core: int | None, call_seconds: float
    ) -> None:
        self._name, self._call_seconds = name, call_seconds
        commands, self._commands = os.pipe()
        self._errors, errors = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            with suppress(BaseException):
                os.close(self._commands)
                _serve(function, inputs, core, commands, errors)
            os._exit(0)
        os.close(commands)
        os.close(errors)
        self._clock = ~self._pid << 3 | 2  # the kernel's number for this process's CPU clock
        self._wait(call_seconds)

    def block(self, seed: int, calls: int) -> tuple[float, float]:
        """CPU and wall seconds of a block of ``calls`` calls on inputs made from ``seed``."""
        os.write(self._commands, _COMMAND.pack(seed, calls))
        self._run(self._call_seconds)
        cpu, wall = time.clock_gettime(self._clock), time.perf_counter()
        self._run(self._call_seconds * calls)
        return time.clock_gettime(self._clock) - cpu, time.perf_counter() - wall

    def _run(self, seconds: float) -> None:
        """Let the worker go on until it stops itself."""
        os.kill(self._pid, signal.SIGCONT)
        self._wait(seconds)

    def _wait(self, seconds: float) -> None:
        deadline = time.perf_counter() + seconds
        while True:
            pid, status = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                return
            if pid:
                self._pid = 0
                said = os.read(self._errors, 10_000).decode(errors="replace")
                raise DuelError(f"{self._name!r} {said or 'ended its process.'}")
            if time.perf_counter() > deadline:
                raise DuelError(f"{self._name!r} did not return within {self._call_seconds:g} s a call.")
            time.sleep(5e-5)

    def end(self) -> None:
        os.close(self._commands)
        os.close(self._errors)
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


def _serve(function: Callable, inputs: Callable, core: int | None, commands: int, errors: int) -> None:
    """A worker's life: stop, be given a seed, make inputs, stop, run a block, and again."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    gc.disable()
    me = os.getpid()
    os.kill(me, signal.SIGSTOP)
    while command := os.read(commands, _COMMAND.size):
        seed, calls = _COMMAND.unpack(command)
        try:
            given = arguments(inputs, seed, "cpu")
            os.kill(me, signal.SIGSTOP)
            for _ in range(calls):
                function(*given)
        except BaseException as error:
            os.write(errors, f"raised {type(error).__name__}: {error}".encode()[:10_000])
            return
        os.kill(me, signal.SIGSTOP)
