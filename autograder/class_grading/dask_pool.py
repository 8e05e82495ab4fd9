"""A class graded by the workers of a Dask scheduler, on this machine or on others. Only --scheduler loads it.

A worker only talks to its Sandbox, whose processes do the work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any

import dask
from distributed import Client, Future, KilledWorker, Worker, get_worker, rpc
from distributed.comm import CommClosedError
from distributed.security import Security

from ..sandbox import Executed, Sandbox, SandboxError
from .pool import PoolError, first_line, not_run

SCHEDULER_SECONDS = 10
WORKER_SECONDS = 60  # how long to wait for a worker to appear or to come back
LOST_SECONDS = 15  # how long to wait for a scheduler that does not answer
DEATHS = 3  # how often a task is tried whose workers died

WORKERS_DIED = (
    "The worker processes that ran it died, one after another. Look at the memory of the machine, then try "
    "it alone: --student"
)
# One class since Python 3.11.
TIMEOUTS = (TimeoutError, asyncio.TimeoutError)


def sandbox_of(worker: Worker) -> Sandbox:
    """On a worker: its Sandbox, which it closes at its end."""
    known = worker.extensions
    return known.get("sandbox") or known.setdefault("sandbox", Sandbox())


def warning_of(require: bool, dask_worker: Worker) -> str | None:
    """On a worker: make its Sandbox; gives the warning that it has for the instructor."""
    sandbox = sandbox_of(dask_worker)
    if require and sandbox.warning:
        raise SandboxError(sandbox.warning)
    return sandbox.warning or sandbox.notice


def run_cells(cells: list[dict], **settings: Any) -> dict:
    """On a worker: run a notebook's cells in the worker's Sandbox."""
    return sandbox_of(get_worker()).run(cells, **settings).to_dict()


class DaskPool:
    """The workers of a Dask scheduler. Raises PoolError where there are none that can be used.

    ``run`` is what the workers call.
    """

    def __init__(
        self, scheduler: str, *, require: bool = False, run: Callable[..., dict] = run_cells
    ) -> None:
        self.name, self._run = scheduler, run
        self._finished: SimpleQueue[tuple[Any, Future, Callable[[], None] | None]] = SimpleQueue()
        for noisy in ("distributed", "tornado", "asyncio"):
            logging.getLogger(noisy).setLevel(logging.CRITICAL)
        try:
            asyncio.run(_answer(scheduler))
            with dask.config.set({"distributed.comm.timeouts.connect": f"{SCHEDULER_SECONDS}s"}):
                self._client = Client(scheduler, timeout=SCHEDULER_SECONDS, set_as_default=False)
        except (OSError, ValueError, *TIMEOUTS) as error:
            raise PoolError(
                f"No Dask scheduler answers at {scheduler} ({first_line(error)}). Start one with `dask "
                "scheduler`, or leave --scheduler out to use this machine alone."
            ) from None
        try:
            self.workers = self._count()
            self.warnings = self._prepare(require)
        except BaseException:
            self.close()
            raise

    def start(self, job: Any, cells: list[dict], *, tries: int = DEATHS, **settings: Any) -> None:
        """Run cells; ``wait`` will give the job when it is done."""
        future = self._client.submit(self._run, cells, **settings, pure=False)
        again = partial(self.start, job, cells, tries=tries - 1, **settings) if tries > 1 else None
        future.add_done_callback(lambda done: self._finished.put((job, done, again)))

    def wait(self) -> tuple[Any, Executed | str]:
        """The next job that is done, with what running it gave, or a sentence that says why it failed.

        Raises PoolError when the cluster is lost.
        """
        while True:
            job, future, again = self._next()
            try:
                if future.status not in ("cancelled", "lost"):
                    return job, Executed.from_dict(future.result(timeout=SCHEDULER_SECONDS))
            except KilledWorker:
                pass  # by this one, or by another that was waiting on the same workers: once more will tell
            except (CancelledError, CommClosedError, *TIMEOUTS):
                sleep(1)  # a client takes a moment to see that its scheduler is gone
            except Exception as error:
                if self._client.status == "running":
                    return job, not_run(error)
            finally:
                future.release()
            if self._client.status != "running":
                raise PoolError(self._lost())
            if not again:
                return job, WORKERS_DIED
            again()  # its worker died before the result could be fetched

    def _next(self) -> tuple[Any, Future, Callable[[], None] | None]:
        """The next that has ended in any way. Raises PoolError when none will."""
        heard = monotonic()
        while True:
            try:
                return self._finished.get(timeout=1)
            except Empty:
                patience = WORKER_SECONDS if self._client.status == "running" else LOST_SECONDS
                if self._alive():
                    heard = monotonic()
                elif monotonic() - heard > patience:
                    raise PoolError(self._lost()) from None

    def _alive(self) -> bool:
        """Whether the scheduler answers and has workers for what it was given."""
        if self._client.status != "running":
            return False
        with suppress(OSError, *TIMEOUTS):
            return bool(self._workers())
        return False

    def _workers(self) -> dict[str, dict]:
        return self._client.scheduler_info(n_workers=-1)["workers"]

    def _count(self) -> int:
        """Wait for workers; how many there are."""
        with suppress(OSError, *TIMEOUTS):
            self._client.wait_for_workers(1, timeout=WORKER_SECONDS)
        found = self._workers()
        if not found:
            raise PoolError(
                f"The scheduler {self.name} has no workers. Start some: dask worker {self.name} --nthreads 1"
            )
        return sum(worker["nthreads"] for worker in found.values())

    def _prepare(self, require: bool) -> list[str]:
        """Make every worker's Sandbox; the warnings they have."""
        try:
            found = self._client.run(warning_of, require, on_error="return")
        except Exception as error:
            raise PoolError(f"The workers of {self.name} cannot start: {error}") from None
        for worker, reply in found.items():
            if isinstance(reply, BaseException):
                raise PoolError(f"The worker {worker} cannot run submissions: {first_line(reply)}")
        return sorted({reply for reply in found.values() if reply})

    def _lost(self) -> str:
        if self._client.status == "running":
            return f"All workers of {self.name} are gone. Start them, then start again."
        return f"The Dask scheduler {self.name} is gone. Start it, then start again."

    def close(self) -> None:
        """Let go of the scheduler; its workers stay."""
        with suppress(Exception):
            self._client.close(timeout=2)


async def _answer(scheduler: str) -> None:
    """Ask the scheduler something: a Client would wait for ever for a port that accepts and says nothing."""
    secrets = Security().get_connection_args("client")
    async with rpc(scheduler, timeout=SCHEDULER_SECONDS, connection_args=secrets) as known:
        await asyncio.wait_for(known.identity(), SCHEDULER_SECONDS)
