"""Where submissions run: what the engine asks of such a place, and the one on this machine.

Checking answers may happen in every worker at once. Races are timed one at a time on each machine, so only
some workers may do that (``timers``).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Condition, Thread
from typing import Any, Protocol

from ..sandbox import Executed, Sandbox

CLOSE_SECONDS = 5  # how long to wait for threads whose sandboxes were stopped


class PoolError(Exception):
    """Submissions cannot be run there, or no more; the message says why and what to do."""


class Pool(Protocol):
    """Workers that run notebooks: ``workers`` of them check answers, ``timers`` of them time races.

    ``warnings`` are sentences for the instructor.
    """

    workers: int
    timers: int
    warnings: list[str]

    def start(self, job: Any, cells: list[dict], *, timing: bool, **settings: Any) -> None:
        """Have cells run; ``wait`` gives the job back. ``settings`` are those of ``Sandbox.run``."""

    def wait(self) -> tuple[Any, Executed | str]:
        """The next job that is done, with what running it gave, or a sentence that says why it failed.

        Raises PoolError when no more can be run.
        """
        ...

    def close(self) -> None:
        """End what still runs."""


class LocalPool:
    """One thread for each of this machine's sandboxes, whose processes do the work; the first also times.

    Raises PoolError where bubblewrap is missing and ``require`` is set.
    """

    def __init__(self, sandboxes: Sequence[Sandbox], *, require: bool = False) -> None:
        self.workers, self.timers = len(sandboxes), 1
        self.warnings = sorted({sandbox.warning for sandbox in sandboxes if sandbox.warning})
        if require and self.warnings:
            raise PoolError(f"This machine cannot run submissions: {self.warnings[0]}")
        self.warnings += sorted({sandbox.notice for sandbox in sandboxes if sandbox.notice})
        self._sandboxes = sandboxes
        self._checks: deque[tuple[Any, list[dict], dict[str, Any]]] = deque()
        self._races: deque[tuple[Any, list[dict], dict[str, Any]]] = deque()
        self._done: SimpleQueue[tuple[Any, Executed | str]] = SimpleQueue()
        self._changed, self._closed = Condition(), False
        self._threads = [
            Thread(target=self._work, args=(sandbox, number == 0), daemon=True)
            for number, sandbox in enumerate(sandboxes)
        ]
        for thread in self._threads:
            thread.start()

    def start(self, job: Any, cells: list[dict], *, timing: bool, **settings: Any) -> None:
        with self._changed:
            (self._races if timing else self._checks).append((job, cells, settings))
            self._changed.notify_all()

    def wait(self) -> tuple[Any, Executed | str]:
        return self._done.get()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for sandbox in self._sandboxes:
            sandbox.stop()
        for thread in self._threads:
            thread.join(CLOSE_SECONDS)

    def _work(self, sandbox: Sandbox, timing: bool) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._checks or (timing and self._races))
                if self._closed:
                    return
                job, cells, settings = (self._races if timing and self._races else self._checks).popleft()
            result: Executed | str
            try:
                result = sandbox.run(cells, **settings)
            except Exception as error:
                result = not_run(error)
            self._done.put((job, result))


def not_run(error: BaseException) -> str:
    """The sentence for a submission whose cells could not be run."""
    return f"It could not be run: {type(error).__name__}: {first_line(error)}"


def first_line(error: BaseException) -> str:
    """What an error says, in one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def cores() -> int:
    """How many processor cores this process may use, by its affinity and by its container's limit."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # there is no limit
        group = Path("/proc/self/cgroup").read_text().strip().rpartition(":")[2].strip("/")
        quota, period = map(int, Path("/sys/fs/cgroup", group, "cpu.max").read_text().split())
        count = max(1, min(count, quota // period))
    return count
