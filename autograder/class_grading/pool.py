"""Where submissions run: what the engine asks of such a place, and the one on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol

from ..command_line import CommandError
from ..sandbox import Executed, PlannedCell, Sandbox, Step

CLOSE_SECONDS = 5  # how long to wait for threads whose sandboxes were stopped


class PoolError(CommandError):
    """Submissions cannot be run there, or no more."""


class Pool(Protocol):
    """So many ``workers`` that run notebooks; ``warnings`` are sentences for the instructor. ``trouble`` says
    what it waits for, if it cannot go on.
    """

    workers: int
    warnings: list[str]
    trouble: str | None

    def start(
        self, job: Any, cells: list[PlannedCell], *, tell: Callable[[Step], None], **settings: Any
    ) -> None:
        """Have cells run; ``wait`` gives the job back. The rest is for ``Sandbox.run``."""

    def wait(self) -> tuple[Any, Executed | str]:
        """The next job that is done, with what running it gave, or a sentence that says why it failed.

        Raises PoolError when no more can be run.
        """
        ...

    def close(self) -> None:
        """End what still runs."""


def begun(number: int, *, unconfined: bool = False) -> list[Sandbox]:
    """So many sandboxes on this machine, which load torch from now on, unless nothing may run in them."""
    sandboxes = [Sandbox(unconfined=unconfined) for _ in range(number)]
    for sandbox in sandboxes:
        if not sandbox.refusal:
            sandbox.begin()
    return sandboxes


class LocalPool:
    """One thread for each of these sandboxes, whose processes do the work. They end with the pool.

    Raises PoolError where they do not let anything run.
    """

    def __init__(self, sandboxes: Sequence[Sandbox]) -> None:
        if refusals := [sandbox.refusal for sandbox in sandboxes if sandbox.refusal]:
            raise PoolError(f"This machine cannot run submissions: {refusals[0]}")
        self.workers = len(sandboxes)
        self.warnings = sorted({sandbox.warning for sandbox in sandboxes if sandbox.warning})
        self.warnings += sorted({sandbox.notice for sandbox in sandboxes if sandbox.notice})
        self.trouble: str | None = None
        self._sandboxes = sandboxes
        self._jobs: SimpleQueue[tuple[Any, list[PlannedCell], dict[str, Any]] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[Any, Executed | str]] = SimpleQueue()
        self._closed = False
        self._threads = [Thread(target=self._work, args=(sandbox,), daemon=True) for sandbox in sandboxes]
        for thread in self._threads:
            thread.start()

    def start(self, job: Any, cells: list[PlannedCell], **settings: Any) -> None:
        self._jobs.put((job, cells, settings))

    def wait(self) -> tuple[Any, Executed | str]:
        return self._done.get()

    def close(self) -> None:
        self._closed = True
        for sandbox in self._sandboxes:
            self._jobs.put(None)
            sandbox.stop()
        for thread in self._threads:
            thread.join(CLOSE_SECONDS)
        for sandbox in self._sandboxes:
            sandbox.close()

    def _work(self, sandbox: Sandbox) -> None:
        while (task := self._jobs.get()) and not self._closed:
            job, cells, settings = task
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
