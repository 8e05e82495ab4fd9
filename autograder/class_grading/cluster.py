"""Where submissions run: a Dask cluster, inside this process for this run, or already running elsewhere.

Checking answers may happen on every worker. Timing them asks for the worker's resource ``timing``, which one
worker on each machine has, so that one machine times one thing at once. A worker only talks to its Sandbox,
whose processes do the work, so those of this machine are threads.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import dask
from distributed import Client, Future, KilledWorker, Scheduler, SpecCluster, Worker, get_worker, rpc
from distributed.comm import CommClosedError
from distributed.security import Security

from ..sandbox import Executed, Sandbox, SandboxError

CONNECT_SECONDS = 10
WORKER_SECONDS = 60  # how long to wait for a worker to appear or to come back
SETTLE_SECONDS = 10  # how long to wait for one that may time, after the first has come
LOST_SECONDS = 15  # how long to wait for a scheduler that does not answer
TIMING = "timing"
DEATHS = 3  # a task that ended so many workers is not tried again

WORKERS_DIED = (
    "The worker processes that ran it died, one after another. Look at the memory of the machine, then try "
    "it alone: --student"
)
# One class since Python 3.11.
TIMEOUTS = (TimeoutError, asyncio.TimeoutError)


class ClusterError(Exception):
    """There is no cluster, or no more; the message says why and what to do."""


def prepare(require: bool, dask_worker: Worker) -> str | None:
    """On a worker: make its Sandbox, if it has none; gives the warning that it has for the instructor."""
    if not hasattr(dask_worker, "sandbox"):
        dask_worker.sandbox = Sandbox()
        atexit.register(dask_worker.sandbox.close)
    warning = getattr(dask_worker.sandbox, "warning", None)
    if require and warning:
        raise SandboxError(warning)
    return warning


def run_cells(cells: list[dict], **settings: Any) -> dict:
    """On a worker: run a notebook's cells in the worker's Sandbox."""
    return get_worker().sandbox.run(cells, **settings).to_dict()


class Cluster:
    """Workers that run submissions: those of a scheduler, or one here for each of ``sandboxes``.

    Raises ClusterError where there are none.
    """

    def __init__(
        self,
        scheduler: str | None = None,
        sandboxes: Sequence[Sandbox] = (),
        *,
        require: bool = False,
        run: Callable[..., dict] = run_cells,
    ) -> None:
        self.require, self.run = require, run
        self.finished: SimpleQueue[tuple[Any, Future, Callable[[], None] | None]] = SimpleQueue()
        self.name, self.sandboxes = scheduler, sandboxes
        for noisy in ("distributed", "tornado", "asyncio"):
            logging.getLogger(noisy).setLevel(logging.CRITICAL)
        self.own = None
        if not scheduler:
            try:
                self.own = _local(sandboxes)
            except (OSError, RuntimeError, *TIMEOUTS) as error:
                raise ClusterError(f"Workers cannot be started here: {_first_line(error)}") from None
        try:
            address = self.own.scheduler_address if self.own else scheduler
            if scheduler:
                asyncio.run(_answer(scheduler))
            with dask.config.set({"distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s"}):
                self.client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, *TIMEOUTS) as error:
            self._close_own()
            raise ClusterError(
                f"No Dask scheduler answers at {scheduler} ({_first_line(error)}). Start one with `dask "
                "scheduler`, or leave --scheduler out to use this machine alone."
            ) from None
        try:
            self._count()
            self.warnings = self._prepare()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(
        self, job: Any, cells: list[dict], *, timing: bool, tries: int = DEATHS, **settings: Any
    ) -> None:
        """Run cells; ``wait`` will give the job when it is done."""
        future = self.client.submit(
            self.run,
            cells,
            **settings,
            key=f"{'timing' if timing else 'checks'}-{uuid4()}",
            resources={TIMING: 1} if timing else None,
            priority=10 if timing else 0,
            pure=False,
        )
        again = None
        if tries > 1:
            again = partial(self.start, job, cells, timing=timing, tries=tries - 1, **settings)
        future.add_done_callback(lambda done: self.finished.put((job, done, again)))

    def wait(self) -> tuple[Any, Executed | str]:
        """The next job that is done, with what running it gave, or a sentence that says why it failed.

        Raises ClusterError when the cluster is lost.
        """
        while True:
            job, future, again = self._next()
            try:
                if future.status not in ("cancelled", "lost"):
                    return job, Executed.from_dict(future.result(timeout=CONNECT_SECONDS))
            except KilledWorker:
                return job, WORKERS_DIED
            except (CancelledError, CommClosedError, *TIMEOUTS):
                sleep(1)  # a client takes a moment to see that its scheduler is gone
            except Exception as error:
                if self.client.status == "running":
                    return job, f"It could not be run: {type(error).__name__}: {_first_line(error)}"
            finally:
                future.release()
            if self.client.status != "running":
                raise ClusterError(self._lost())
            if not again:
                return job, WORKERS_DIED
            again()  # its worker died before the result could be fetched

    def _next(self) -> tuple[Any, Future, Callable[[], None] | None]:
        """The next that has ended in any way. Raises ClusterError when none will."""
        heard = monotonic()
        while True:
            try:
                return self.finished.get(timeout=1)
            except Empty:
                patience = WORKER_SECONDS if self.client.status == "running" else LOST_SECONDS
                if self._alive():
                    heard = monotonic()
                elif monotonic() - heard > patience:
                    raise ClusterError(self._lost()) from None

    def _alive(self) -> bool:
        """Whether the scheduler answers and has workers for what it was given."""
        if self.client.status != "running":
            return False
        with suppress(OSError, *TIMEOUTS):
            return bool(self._workers())
        return False

    def _workers(self) -> dict[str, dict]:
        return self.client.scheduler_info(n_workers=-1)["workers"]

    def _count(self) -> None:
        """Wait for workers and count them."""
        with suppress(OSError, *TIMEOUTS):
            self.client.wait_for_workers(len(self.own.worker_spec) if self.own else 1, timeout=WORKER_SECONDS)
        found = self._workers()
        if not found:
            raise ClusterError(
                f"The scheduler {self.name or 'of this machine'} has no workers. Start some: dask worker "
                f"{self.name or ''} --nthreads 1"
            )
        deadline = monotonic() + SETTLE_SECONDS
        while not (timers := _timers(found)) and monotonic() < deadline:
            sleep(0.5)
            found = self._workers()
        self.workers, self.timers = sum(worker["nthreads"] for worker in found.values()), timers
        if not timers:
            raise ClusterError(
                f"No worker of {self.name} may time races. Start one worker on each machine with "
                f'--resources "{TIMING}=1".'
            )

    def _prepare(self) -> list[str]:
        """Make every worker's Sandbox; the warnings they have."""
        try:
            found = self.client.run(prepare, self.require, on_error="return")
        except Exception as error:
            raise ClusterError(
                f"The workers of {self.name or 'this machine'} cannot start: {error}"
            ) from None
        for worker, reply in found.items():
            if isinstance(reply, BaseException):
                where = f"The worker {worker}" if self.name else "This machine"
                raise ClusterError(f"{where} cannot run submissions: {_first_line(reply)}")
        return sorted({reply for reply in found.values() if reply})

    def _lost(self) -> str:
        if self.client.status == "running":
            return f"All workers of {self.name or 'this machine'} are gone. Start them, then start again."
        return f"The Dask scheduler {self.name or 'of this machine'} is gone. Start it, then start again."

    def _close_own(self) -> None:
        if self.own:
            with suppress(Exception):
                self.own.close(timeout=CONNECT_SECONDS)

    def close(self) -> None:
        """Let go of the cluster; end it, and what runs in its sandboxes, if it was started here."""
        for sandbox in self.sandboxes:
            sandbox.stop()
        with suppress(Exception):
            self.client.close(timeout=2)
        self._close_own()


def _timers(workers: dict[str, dict]) -> int:
    """How many of the workers may time."""
    return sum(int(worker["resources"].get(TIMING, 0)) for worker in workers.values())


def _local(sandboxes: Sequence[Sandbox]) -> SpecCluster:
    """A cluster inside this process; the first of its workers times. No other process can reach it."""
    dask.config.set(
        {
            "distributed.scheduler.worker-saturation": 1.0,
            "distributed.scheduler.work-stealing": False,
        }
    )
    inside = {"protocol": "inproc://", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    specs = {
        number: {
            "cls": Worker,
            "options": {
                "nthreads": 1,
                "resources": {TIMING: int(number == 0)},
                "memory_limit": 0,
                **inside,
            },
        }
        for number in range(len(sandboxes))
    }
    cluster = SpecCluster(
        specs, scheduler={"cls": Scheduler, "options": inside}, silence_logs=logging.CRITICAL, name="grading"
    )
    for number, sandbox in enumerate(sandboxes):
        cluster.workers[number].sandbox = sandbox
    return cluster


async def _answer(scheduler: str) -> None:
    """Ask the scheduler something: a Client would wait for ever for a port that accepts and says nothing."""
    secrets = Security().get_connection_args("client")
    async with rpc(scheduler, timeout=CONNECT_SECONDS, connection_args=secrets) as known:
        await asyncio.wait_for(known.identity(), CONNECT_SECONDS)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
