"""Where submissions run: what the engine asks of such a place, and the one on this machine."""

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any

from ..command_line import CommandError
from ..sandbox import Executed, PlannedCell, Sandbox

CLOSE_SECONDS = 5  # how long to wait for threads whose work was stopped

Run = Callable[..., "Executed | str"]  # as ``Sandbox.run``; a sentence says why that failed


class PoolError(CommandError):
    """Submissions cannot be run there, or no more."""


class Pool:
    """A thread for each of these functions that run notebooks somewhere, so many ``workers`` at once.

    ``warnings`` are sentences for the instructor; ``trouble`` says what it waits for, if it cannot go on.
    """

    workers: int
    warnings: Sequence[str] = ()
    trouble: str | None = None

    def __init__(self, runs: Sequence[Run]) -> None:
        self._jobs: SimpleQueue[tuple[Any, list[PlannedCell], dict[str, Any]] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[Any, Executed | str | PoolError]] = SimpleQueue()
        self._closed = False
        self._threads = [Thread(target=self._work, args=(run,), daemon=True) for run in runs]
        for thread in self._threads:
            thread.start()

    def start(self, job: Any, cells: list[PlannedCell], **settings: Any) -> None:
        """Have cells run; ``wait`` gives the job back. The rest is for ``Sandbox.run``."""
        self._jobs.put((job, cells, settings))

    def wait(self) -> tuple[Any, Executed | str]:
        """The next job that is done, with what running it gave, or a sentence that says why it failed.

        Raises PoolError when no more can be run.
        """
        job, result = self._done.get()
        if isinstance(result, PoolError):
            raise result
        return job, result

    def stop(self) -> None:
        """Let what runs end now."""

    def close(self) -> None:
        """End what still runs."""
        self._closed = True
        for _ in self._threads:
            self._jobs.put(None)
        self.stop()
        for thread in self._threads:
            thread.join(CLOSE_SECONDS)

    def _work(self, run: Run) -> None:
        while (task := self._jobs.get()) and not self._closed:
            job, cells, settings = task
            result: Executed | str | PoolError
            try:
                result = run(cells, **settings)
            except PoolError as error:
                result = error
            except Exception as error:
                result = not_run(error)
            self._done.put((job, result))


class LocalPool(Pool):
    """Runs notebooks in these sandboxes, which end with it. Raises PoolError where nothing may run there."""

    def __init__(self, sandboxes: Sequence[Sandbox]) -> None:
        if refusals := [sandbox.refusal for sandbox in sandboxes if sandbox.refusal]:
            raise PoolError(f"This machine cannot run submissions: {refusals[0]}")
        self.workers = len(sandboxes)
        self.warnings = sorted({said for one in sandboxes for said in (one.warning, one.notice) if said})
        self._sandboxes = sandboxes
        super().__init__([sandbox.run for sandbox in sandboxes])

    def stop(self) -> None:
        for sandbox in self._sandboxes:
            sandbox.stop()

    def close(self) -> None:
        super().close()
        for sandbox in self._sandboxes:
            sandbox.close()


def begun(number: int, *, unconfined: bool = False) -> list[Sandbox]:
    """So many sandboxes on this machine, which load torch from now on, unless nothing may run in them."""
    sandboxes = [Sandbox(unconfined=unconfined) for _ in range(number)]
    for sandbox in sandboxes:
        if not sandbox.refusal:
            sandbox.begin()
    return sandboxes


def not_run(error: BaseException) -> str:
    return f"It could not be run: {type(error).__name__}: {first_line(error)}"


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
