"""A class graded by the workers of a Dask scheduler, here or on others: what ``--scheduler`` asks for.

A worker only talks to its Sandbox, whose processes do the work. Workers may come and go; a scheduler that is
lost is waited for, and gets all again that it had not given back.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from threading import Event, RLock
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import dask
from distributed import Client, KilledWorker, Worker, get_worker, rpc
from distributed.security import Security

from ...class_grading.pool import Pool, PoolError, first_line, not_run
from ...sandbox import Executed, PlannedCell, Sandbox, SandboxError, Step

SCHEDULER_SECONDS = 10
WORKER_SECONDS = 60  # how long to wait for the first worker
LOST_SECONDS = 600  # how long to wait for a scheduler, or for workers, to come back
SAID_SECONDS = 5  # after which that is said
LOOK_SECONDS = 1  # between two looks at the workers
TRIES = 3  # of a notebook whose workers die, or cannot run it

WORKERS_DIED = "The worker processes that ran it died. Look at the memory there, then try it alone: --student"
# One class since Python 3.11.
UNREACHABLE = (OSError, ValueError, TimeoutError, asyncio.TimeoutError)


def sandbox_of(worker: Worker, unconfined: bool) -> Sandbox:
    """On a worker: its Sandbox, which it closes at its end."""
    known = worker.extensions
    name = "unconfined sandbox" if unconfined else "sandbox"
    return known.get(name) or known.setdefault(name, Sandbox(unconfined=unconfined))


def warning_of(unconfined: bool, dask_worker: Worker) -> str | None:
    """On a worker: make its Sandbox; gives its warning. Raises SandboxError where nothing may run."""
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
    tell = lambda step: worker.log_event(topic, [number, asdict(step)])
    try:
        return {"executed": run(cells, tell=tell, **settings)}
    except Exception as error:  # whatever it is, another worker may do better
        return {"failed": not_run(error), "worker": worker.address}


class DaskPool(Pool):
    """The workers of a Dask scheduler, which call ``run``. Raises PoolError where none can be used."""

    def __init__(self, scheduler: str, unconfined: bool = False, *, run: Callable = run_cells) -> None:
        self.name, self._run, self._unconfined = scheduler, run, unconfined
        self._topic = f"grading-{uuid4()}"
        self._tells: dict[int, Callable[[Step], None]] = {}
        self._lock = RLock()
        self._known, self._looked, self._seen = set[str](), 0.0, monotonic()
        for noisy in ("distributed", "tornado", "asyncio"):
            logging.getLogger(noisy).setLevel(logging.CRITICAL)
        try:
            self._client = self._connect()
        except UNREACHABLE as error:
            advice = "Start one with `dask scheduler`, or leave --scheduler out to use this machine alone."
            words = f"No Dask scheduler answers at {scheduler} ({first_line(error)}). {advice}"
            raise PoolError(words) from None
        try:
            with suppress(*UNREACHABLE):
                self._client.wait_for_workers(1, timeout=WORKER_SECONDS)
            if not (found := self._info()):
                advice = f"Start some: dask worker {scheduler} --nthreads 1"
                raise PoolError(f"{scheduler} has no workers. {advice}")
            self.workers = sum(worker["nthreads"] for worker in found.values())
            self.warnings = self._prepare()
        except BaseException:
            self.stop()
            raise
        super().__init__([self._run_there] * 2 * self.workers)  # so that one waits while another runs

    def stop(self) -> None:
        """Let go of the scheduler; its workers stay."""
        with suppress(Exception):
            self._client.close(timeout=2)

    def _run_there(self, cells: list[PlannedCell], *, tell: Callable[[Step], None], **settings: Any) -> Any:
        """Have the cluster run a notebook: what that gave, or a sentence that says why it failed.

        Raises PoolError when the cluster is lost, and does not come back.
        """
        number = id(tell)  # while it runs, no other has it
        done: dict[str, Any] = {"worker": None}
        self._tells[number] = tell
        try:
            for _ in range(TRIES):
                done = self._try(number, cells, {"unconfined": self._unconfined, **settings}, done["worker"])
                if "executed" in done:
                    return Executed(**done["executed"])
            return done["failed"]
        finally:
            del self._tells[number]

    def _try(self, number: int, cells: list[PlannedCell], settings: dict, not_on: str | None) -> dict:
        """What a worker gave, another than ``not_on`` if there is any: who refuses is soon free again, and
        would take most of what is tried once more.
        """
        while True:  # until none was lost on the way
            client, ended = self._client, Event()
            others = sorted(self._workers() - {not_on}) if not_on else []
            if client.status == "running":
                future = client.submit(
                    attempt, self._run, cells, settings, self._topic, number,
                    pure=False, workers=others or None,
                )  # fmt: skip
                future.add_done_callback(lambda _, ended=ended: ended.set())
                try:
                    left = True
                    while left and client.status == "running" and not ended.wait(LOOK_SECONDS):
                        there = self._workers()
                        left = not others or not there.isdisjoint(others)
                    if not left:
                        continue
                    if client.status == "running" and not future.cancelled():  # as when the scheduler is gone
                        return future.result(timeout=SCHEDULER_SECONDS)
                except PoolError:
                    raise
                except KilledWorker:
                    # By this one, or by another that was waiting on the same workers: once more will tell.
                    return {"failed": WORKERS_DIED, "worker": None}
                except Exception as error:  # its worker died before the result could be fetched
                    return {"failed": not_run(error), "worker": None}
                finally:
                    future.release()
            self._come_back(client)

    def _connect(self) -> Client:
        asyncio.run(_answer(self.name))
        with dask.config.set({"distributed.comm.timeouts.connect": f"{SCHEDULER_SECONDS}s"}):
            client = Client(self.name, timeout=SCHEDULER_SECONDS, set_as_default=False)
        client.subscribe_topic(self._topic, self._heard)
        return client

    def _heard(self, event: tuple[float, Any]) -> None:
        _, (number, step) = event
        if tell := self._tells.get(number):
            tell(Step(**step))

    def _come_back(self, lost: Client) -> None:
        """Wait for a scheduler that is gone, unless another thread has done that. Raises PoolError."""
        with self._lock:
            if self._client is not lost:
                return
            self.trouble = f"waiting: the Dask scheduler {self.name} is gone. Start it and its workers."
            self.stop()
            until = monotonic() + LOST_SECONDS
            while monotonic() < until and not self._closed:
                with suppress(*UNREACHABLE):
                    self._client = self._connect()
                    self.trouble, self._seen = None, monotonic()
                    return
                sleep(1)
            raise PoolError(f"The Dask scheduler {self.name} is gone. Start it.", again=True)

    def _workers(self) -> set[str]:
        """The addresses of the workers now; that there are none is said, and when it lasts a PoolError."""
        with self._lock:
            if monotonic() - self._looked > LOOK_SECONDS:  # many threads ask
                self._known, self._looked = set(self._info()), monotonic()
                gone = self._looked - self._seen
                if self._known:
                    self.trouble, self._seen = None, self._looked
                elif gone > LOST_SECONDS:
                    raise PoolError(f"All workers of {self.name} are gone. Start them.", again=True)
                elif gone > SAID_SECONDS:
                    advice = "Start some, and grading goes on."
                    self.trouble = f"waiting: all workers of {self.name} are gone. {advice}"
            return self._known

    def _info(self) -> dict[str, dict]:
        with suppress(*UNREACHABLE):
            return self._client.scheduler_info(n_workers=-1)["workers"]
        return {}

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


async def _answer(scheduler: str) -> None:
    """Ask the scheduler something: a Client would wait for ever for a port that accepts and says nothing."""
    secrets = Security().get_connection_args("client")
    async with rpc(scheduler, timeout=SCHEDULER_SECONDS, connection_args=secrets) as known:
        await asyncio.wait_for(known.identity(), SCHEDULER_SECONDS)
