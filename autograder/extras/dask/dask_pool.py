"""A class graded by the workers of a Dask scheduler, on this machine or on others.

A worker only talks to its Sandbox, whose processes do the work. Workers may come and go; a scheduler that is
lost is waited for, and gets all again that it had not given back.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import dask
from distributed import Client, Future, KilledWorker, Worker, get_worker, rpc
from distributed.security import Security

from ...class_grading.pool import PoolError, first_line, not_run
from ...sandbox import Executed, PlannedCell, Sandbox, SandboxError, Step

SCHEDULER_SECONDS = 10
WORKER_SECONDS = 60  # how long to wait for the first worker
LOST_SECONDS = 600  # how long to wait for a scheduler, or for workers, to come back
SAID_SECONDS = 5  # after which that is said
TRIES = 3  # of a notebook whose workers die, or cannot run it

WORKERS_DIED = (
    "The worker processes that ran it died, one after another. Look at the memory of the machine, then try "
    "it alone: --student"
)
# One class since Python 3.11.
TIMEOUTS = (TimeoutError, asyncio.TimeoutError)


def sandbox_of(worker: Worker, unconfined: bool) -> Sandbox:
    """On a worker: its Sandbox, which it closes at its end."""
    known = worker.extensions
    name = "unconfined sandbox" if unconfined else "sandbox"
    return known.get(name) or known.setdefault(name, Sandbox(unconfined=unconfined))


def warning_of(unconfined: bool, dask_worker: Worker) -> str | None:
    """On a worker: make its Sandbox; gives the warning that it has for the instructor.

    Raises SandboxError where nothing may run.
    """
    sandbox = sandbox_of(dask_worker, unconfined)
    if sandbox.refusal:
        raise SandboxError(sandbox.refusal)
    return sandbox.warning or sandbox.notice


def run_cells(cells: list[PlannedCell], *, unconfined: bool, **settings: Any) -> dict:
    """On a worker: run a notebook's cells in the worker's Sandbox. It may be one that came late."""
    return asdict(sandbox_of(get_worker(), unconfined).run(cells, **settings))


def attempt(
    run: Callable[..., dict], cells: list[PlannedCell], settings: dict[str, Any], topic: str, number: int
) -> dict:
    """On a worker: what ``run`` gives, or a sentence that says why it failed there; says what is done now."""
    worker = get_worker()

    def tell(step: Step) -> None:
        worker.log_event(topic, [number, asdict(step)])

    try:
        return {"executed": run(cells, tell=tell, **settings)}
    except Exception as error:  # whatever it is, another worker may do better
        return {"failed": not_run(error), "worker": worker.address}


@dataclass(eq=False)
class _Task:
    """A notebook that the cluster has."""

    job: Any
    cells: list[PlannedCell]
    tell: Callable[[Step], None]
    settings: dict[str, Any]
    tries: int = TRIES
    only: frozenset[str] = frozenset()  # the workers that it is for, if not for all
    future: Future | None = None


class DaskPool:
    """The workers of a Dask scheduler. Raises PoolError where there are none that can be used.

    ``run`` is what the workers call.
    """

    def __init__(
        self, scheduler: str, unconfined: bool = False, *, run: Callable[..., dict] = run_cells
    ) -> None:
        self.name, self._run, self._unconfined = scheduler, run, unconfined
        self.trouble: str | None = None
        self._topic = f"grading-{uuid4()}"
        self._numbers = itertools.count()
        self._tasks: dict[int, _Task] = {}
        self._ended: SimpleQueue[tuple[int, Future]] = SimpleQueue()
        for noisy in ("distributed", "tornado", "asyncio"):
            logging.getLogger(noisy).setLevel(logging.CRITICAL)
        try:
            self._client = self._connect()
        except (OSError, ValueError, *TIMEOUTS) as error:
            raise PoolError(
                f"No Dask scheduler answers at {scheduler} ({first_line(error)}). Start one with `dask "
                "scheduler`, or leave --scheduler out to use this machine alone."
            ) from None
        try:
            self.workers = self._count()
            self.warnings = self._prepare()
        except BaseException:
            self.close()
            raise

    def start(
        self, job: Any, cells: list[PlannedCell], *, tell: Callable[[Step], None], **settings: Any
    ) -> None:
        number = next(self._numbers)
        self._tasks[number] = _Task(job, cells, tell, {"unconfined": self._unconfined, **settings})
        self._submit(number)

    def wait(self) -> tuple[Any, Executed | str]:
        """The next job that is done, with what running it gave, or a sentence that says why it failed.

        Raises PoolError when the cluster is lost, and does not come back.
        """
        while True:
            number, future = self._next()
            task = self._tasks[number]
            if future.cancelled():  # all are, when the scheduler is gone
                self._come_back()
                continue
            try:
                done = future.result(timeout=SCHEDULER_SECONDS)
            except KilledWorker:
                # By this one, or by another that was waiting on the same workers: once more will tell.
                done = {"failed": WORKERS_DIED, "worker": None}
            except Exception as error:  # its worker died before the result could be fetched
                done = {"failed": not_run(error), "worker": None}
            finally:
                future.release()
            task.tries -= 1
            if "failed" in done and task.tries:
                self._submit(number, not_on=done["worker"])
                continue
            del self._tasks[number]
            return task.job, done.get("failed") or Executed(**done["executed"])

    def _connect(self) -> Client:
        """A client that hears what is done."""
        asyncio.run(_answer(self.name))
        with dask.config.set({"distributed.comm.timeouts.connect": f"{SCHEDULER_SECONDS}s"}):
            client = Client(self.name, timeout=SCHEDULER_SECONDS, set_as_default=False)
        client.subscribe_topic(self._topic, self._heard)
        return client

    def _heard(self, event: tuple[float, Any]) -> None:
        _, (number, step) = event
        if task := self._tasks.get(number):
            task.tell(Step(**step))

    def _submit(self, number: int, not_on: str | None = None) -> None:
        """Let the cluster have it; on another worker than the given one, if there is any."""
        if self._client.status == "closed":
            return  # ``_next`` sees that, too; then all are submitted again
        task = self._tasks[number]
        task.only = frozenset(self._workers()) - {not_on} if not_on else frozenset()
        task.future = self._client.submit(
            attempt, self._run, task.cells, task.settings, self._topic, number,
            pure=False, workers=sorted(task.only) or None,
        )  # fmt: skip
        task.future.add_done_callback(lambda future: self._ended.put((number, future)))

    def _next(self) -> tuple[int, Future]:
        """The next that has ended in any way. Raises PoolError when none will."""
        heard = monotonic()
        while True:
            with suppress(Empty):
                number, future = self._ended.get(timeout=1)
                if number in self._tasks and self._tasks[number].future is future:
                    self.trouble = None
                    return number, future
            if self._client.status != "running":
                self._come_back()
                heard = monotonic()
            elif there := self._workers():
                heard, self.trouble = monotonic(), None
                for number, task in self._tasks.items():
                    if task.only and not task.only & there.keys():  # it would wait for ever
                        self._submit(number)
            elif monotonic() - heard > LOST_SECONDS:
                raise PoolError(f"All workers of {self.name} are gone. Start them.", again=True)
            elif monotonic() - heard > SAID_SECONDS:
                self.trouble = (
                    f"waiting: all workers of {self.name} are gone. Start some, and grading goes on."
                )

    def _come_back(self) -> None:
        """Wait for a scheduler that is gone, and let it have everything again. Raises PoolError."""
        self.trouble = (
            f"waiting: the Dask scheduler {self.name} is gone. Start it and its workers, and grading goes on."
        )
        self.close()
        until = monotonic() + LOST_SECONDS
        while True:
            try:
                self._client = self._connect()
                break
            except (OSError, ValueError, *TIMEOUTS):
                if monotonic() > until:
                    raise PoolError(
                        f"The Dask scheduler {self.name} is gone. Start it.", again=True
                    ) from None
            sleep(1)
        self.trouble = None
        for number in self._tasks:
            self._submit(number)

    def _workers(self) -> dict[str, dict]:
        """The workers that there are now, by their addresses; none where the scheduler is gone."""
        with suppress(OSError, *TIMEOUTS):
            return self._client.scheduler_info(n_workers=-1)["workers"]
        return {}

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

    def _prepare(self) -> list[str]:
        """Make every worker's Sandbox; the warnings they have."""
        try:
            found = self._client.run(warning_of, self._unconfined, on_error="return")
        except Exception as error:
            raise PoolError(f"The workers of {self.name} cannot start: {error}") from None
        for worker, reply in found.items():
            if isinstance(reply, BaseException):
                raise PoolError(f"The worker {worker} cannot run submissions: {first_line(reply)}")
        return sorted({reply for reply in found.values() if reply})

    def close(self) -> None:
        """Let go of the scheduler; its workers stay."""
        with suppress(Exception):
            self._client.close(timeout=2)


async def _answer(scheduler: str) -> None:
    """Ask the scheduler something: a Client would wait for ever for a port that accepts and says nothing."""
    secrets = Security().get_connection_args("client")
    async with rpc(scheduler, timeout=SCHEDULER_SECONDS, connection_args=secrets) as known:
        await asyncio.wait_for(known.identity(), SCHEDULER_SECONDS)
