"""Time limits that a busy machine does not use up: time spent waiting for a core is given back."""

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

MOST_STRETCH = 10  # times its seconds is the most that a countdown lasts
LOOK_SECONDS = 0.1


class CoreTime:
    """The time that processes have had on a core, and that they have waited for one, with all their threads.

    ``processes`` gives the numbers of those that are there now. They are looked at whenever somebody asks, at
    most every ``LOOK_SECONDS``; those that have ended count with what was seen last. Where the kernel does
    not tell (Linux does, in /proc), both are 0.
    """

    def __init__(self, processes: Callable[[], Iterable[int]] = lambda: [os.getpid()]) -> None:
        self._processes = processes
        self._seen: dict[str, tuple[int, int]] = {}
        self._seconds = 0.0, 0.0
        self._looked = -LOOK_SECONDS

    def seconds(self) -> tuple[float, float]:
        """Seconds on a core, and seconds of waiting for one, of all threads seen so far."""
        now = time.monotonic()
        if now >= self._looked + LOOK_SECONDS:
            self._looked = now
            # A new dict: a signal may interrupt this to ask the same.
            self._seen = {**self._seen, **_threads(self._processes())}
            ran, waited = map(sum, zip(*self._seen.values(), strict=True)) if self._seen else (0, 0)
            self._seconds = ran / 1e9, waited / 1e9
        return self._seconds


class Countdown:
    """``seconds`` from now on, and longer where the processes of ``core_time`` wait for a core meanwhile.

    What processes take from each other is not given back: once they have had ``seconds`` on cores, it is
    over. It never lasts longer than ``MOST_STRETCH`` times its seconds.
    """

    def __init__(self, seconds: float, core_time: CoreTime) -> None:
        self.seconds, self._core_time = seconds, core_time
        self._start = time.monotonic()
        self._end = self._start + seconds
        self._before = core_time.seconds()

    def left(self) -> float:
        """Seconds until the end, as far as is known now; 0 when it is over."""
        seen = self._core_time.seconds()  # also while there is no need: processes may end before there is
        now = time.monotonic()
        if now >= self._end:
            ran, waited = (a - b for a, b in zip(seen, self._before, strict=True))
            passed = now - self._start
            used = max(ran, passed - waited, passed / MOST_STRETCH)
            self._end = max(self._end, now + self.seconds - used)
        return max(0.0, self._end - now)

    def put_off(self, seconds: float) -> None:
        """Begin so many seconds later: what passed was somebody else's time."""
        self._start += seconds
        self._end += seconds


def _threads(processes: Iterable[int]) -> dict[str, tuple[int, int]]:
    """For each thread of these processes the nanoseconds on a core, and those of waiting for one."""
    found: dict[str, tuple[int, int]] = {}
    for process in processes:
        with suppress(OSError, ValueError):  # it has ended, or the kernel does not tell
            for thread in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{thread}/schedstat", encoding="ascii") as file:
                    ran, waited, _ = file.read().split()
                found[thread] = int(ran), int(waited)
    return found
