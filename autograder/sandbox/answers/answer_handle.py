"""The judge's handle on a process that runs somebody's cells: start, ask, watch, copy and replace it."""

import math
import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import psutil

from ..walls import linux
from ..walls.linux import kill
from ..walls.memory_use import MemoryUse
from ..wire.channel import Channel, Frame, Gone, Malformed, Patience, TooLate, pair
from ..wire.messages import CellShown, Fork, Hello, RunCell, Shown, Spawn, Spawned, TakeFiles, parse

if TYPE_CHECKING:
    from typing_extensions import TypeForm

START_SECONDS = 300.0  # for what no student's code can slow down
MOST_MEMORY = 3 << 30  # bytes, of all processes of one set of namespaces
NUMBER = struct.Struct("<q")

_GRACE_SECONDS = 3.0
_WATCH_SECONDS = 0.25

M = TypeVar("M")


class Ended(Exception):
    """The process is gone, or said something that no process of ours says; the text says why."""


class Connection:
    """One process on the other side of a channel, in namespaces of its own.

    ``first`` is the number of the first process there, and ``to_first`` a connection to it (None where the
    machine has no namespaces). What is suspicious is added to ``suspicious``. The process has ``seconds`` to
    say that it is there. ``open_to_looks``: this machine lets us look at its memory. While a reply is waited
    for, ``look`` is called, if it is there.
    """

    open_to_looks = False

    def __init__(
        self,
        channel: Channel,
        first: int,
        to_first: socket.socket | None,
        suspicious: list[str],
        seconds: Patience,
    ) -> None:
        self.channel, self.first, self.to_first, self.suspicious = channel, first, to_first, suspicious
        parse(channel.receive(seconds), Hello)
        self.pid = channel.pid
        self.why = ""
        self._watched = 0.0
        self.look: Callable[[], None] | None = None

    def reply(self, kind: "TypeForm[M]", seconds: Patience) -> tuple[M, Frame]:
        """The reply to what was sent over ``channel``, and the frame with its payload.

        Raises TooLate, or Ended where there is no sound reply of this kind: a process that sends one is
        ended.
        """
        try:
            frame = self.channel.receive(seconds, self.watch)
            for file in frame.files:  # nobody here wants any
                os.close(file)
            return parse(frame, kind), frame
        except Gone:
            raise Ended(self.why) from None
        except Malformed as error:
            self.suspicious.append(f"The answer's process sent {error}.")
            self.end()
            raise Ended(f"it sent {error}") from None

    def newest_process(self) -> int:
        """The number of the newest process or thread in its namespaces: a new one has a new number."""
        if self.to_first is None:
            return 0
        try:
            self.to_first.send(b"?")
            (newest,) = NUMBER.unpack(self.to_first.recv(NUMBER.size))
            return int(newest)
        except (OSError, struct.error):
            raise Ended("the first process of its namespaces was gone") from None

    def members(self) -> list[int]:
        """All processes of its namespaces that run, but the first, which is ours."""
        found = linux.with_descendants(self.first)[0 if self.to_first is None else 1 :]
        return [pid for pid in found if linux.live_threads([pid])]

    def watch(self) -> None:
        """End all processes of its namespaces where they use more than their share."""
        if self.look:
            self.look()
        if time.monotonic() < self._watched + _WATCH_SECONDS:
            return
        self._watched = time.monotonic()
        members = linux.with_descendants(self.first)
        if len(members) > linux.PROCESSES:
            self.end_all(f"it started more than {linux.PROCESSES} processes")
        if sum(len(linux.threads(pid)) for pid in members) > linux.THREADS:
            self.end_all(f"it started more than {linux.THREADS} threads")
        if linux.count_sockets(self.first) > linux.SOCKETS:
            self.end_all(f"it opened more than {linux.SOCKETS} sockets")
        if linux.hidden_bytes(members) > linux.DISK:
            self.end_all(f"it kept more than {linux.DISK >> 20} MiB in files without a name")
        if _memory(members, "rss") > MOST_MEMORY and _memory(members, "pss") > MOST_MEMORY:
            self.end_all(f"it used more than {MOST_MEMORY >> 30} GiB of memory")

    def end_all(self, why: str) -> None:
        """End all processes of its namespaces, for a reason that the student should read."""
        self.why = why
        self.suspicious.append(f"The answer's processes were stopped: {why}.")
        kill(self.first)

    def end(self) -> None:
        """End this process."""
        with suppress(OSError):
            self.channel.close()
        kill(self.pid)

    def await_end(self) -> None:
        """Wait until this process, which was ended, is gone."""
        deadline = time.monotonic() + _GRACE_SECONDS
        while linux.alive(self.pid) and time.monotonic() < deadline:
            time.sleep(2e-4)


def _memory(pids: Sequence[int], kind: str) -> int:
    """Bytes of memory of these processes: resident ("rss"), or their shares of what is shared ("pss")."""
    total = 0
    for pid in pids:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            total += process.memory_info().rss if kind == "rss" else process.memory_full_info().pss
    return total


class AnswerHandle:
    """A process that has run the notebook's cells so far, and is replaced when it is lost.

    The ``files`` are put into its folder before anything runs there. ``shares`` has the names of functions
    whose results have been seen in the memory of their inputs.

    Races are run by copies of it, which are forks. A process with threads cannot be forked safely, so in
    place of a copy of one a fresh process runs the same cells again.
    """

    def __init__(
        self, forkserver: Channel, suspicious: list[str], assignment: str, files: Mapping[str, bytes] = {}
    ) -> None:
        self._forkserver, self.suspicious, self._assignment = forkserver, suspicious, assignment
        self._files = dict(files)
        self.cells: list[str] = []
        self.shares: set[str] = set()
        self._took: dict[str, float] = {}  # seconds that each took, when it ran for the first time
        self.connection: Connection | None = None

    def run(self, source: str, left: Callable[[], float]) -> Sequence[Shown]:
        """Run a cell within the time that is ``left``; what it showed, as its process tells it.

        Raises TooLate or Ended; the cell is undone then.
        """
        try:
            connection, start = self.use(left), time.monotonic()
            shown = _run_cell(connection, source, left)
        except (TooLate, Ended):
            self.end()
            raise
        self._took[source] = time.monotonic() - start
        self.cells.append(source)
        return shown

    def use(self, left: Callable[[], float]) -> Connection:
        """The process itself, or a fresh one in its state where it was lost. Raises Ended or TooLate."""
        if self.connection is None:
            self.connection = self._fresh(left)
        return self.connection

    def _fresh(self, left: Callable[[], float]) -> Connection:
        """A new process that has run the same cells; those that fail now are left out from now on."""
        while True:
            connection = self._start()
            for source in list(self.cells):
                before = left()
                try:
                    _run_cell(connection, source, left)
                except (TooLate, Ended) as error:
                    connection.end()
                    kill(connection.first)
                    if isinstance(error, TooLate) and before < 3 * self._took.get(source, math.inf) + 1:
                        raise  # there was little time: that says nothing about the cell
                    self.cells.remove(source)
                    break
            else:
                return connection

    def _start(self) -> Connection:
        channel, other = pair()
        to_first, first_end = socket.socketpair()
        to_first.settimeout(START_SECONDS)
        with other, first_end:
            self._forkserver.send(Spawn(self._assignment), files=[other.fileno(), first_end.fileno()])
        reply = parse(self._forkserver.receive(START_SECONDS), Spawned)
        answers = to_first if reply.namespaces else None
        try:
            connection = Connection(channel, reply.pid, answers, self.suspicious, START_SECONDS)
            with suppress(OSError):  # now, while no student's code could hinder us
                MemoryUse([connection.pid], 0).most([connection.pid], 0)
                connection.open_to_looks = True
            if self._files:
                connection.channel.send(TakeFiles(self._files), seconds=START_SECONDS)
                connection.reply(Hello, START_SECONDS)
            return connection
        except (Gone, TooLate, Malformed):
            kill(reply.pid)
            raise Ended("its process could not be started") from None

    def start_copy(self, made: Callable[[Connection], M], left: Callable[[], float]) -> Callable[[], M]:
        """Start a process in the state after the last cell; gives what waits for what is ``made`` of it.

        Both raise Ended; TooLate where a fresh process is needed, and the time is not enough for it.
        """
        original = self.use(left)
        if len(linux.threads(original.pid)) != 1:
            fresh = self._fresh(left)
            return lambda: made(fresh)
        channel, other = pair()
        try:
            with other:
                original.channel.send(Fork(), files=[other.fileno()], seconds=left)
        except (Gone, TooLate):
            raise Ended("its process was gone") from None

        def wait() -> M:
            try:
                copy = Connection(channel, original.first, original.to_first, self.suspicious, left)
            except (Gone, TooLate, Malformed):
                self.end()
                raise Ended("its process could not be copied") from None
            return made(copy)

        return wait

    def end(self) -> None:
        """End the process and all of its namespaces; the next use starts a fresh one."""
        if self.connection:
            self.connection.end()
            kill(self.connection.first)
            self.connection = None


def _run_cell(connection: Connection, source: str, left: Callable[[], float]) -> Sequence[Shown]:
    try:
        connection.channel.send(RunCell(source), seconds=left)
        return connection.reply(CellShown, left)[0].outputs
    except Gone:
        raise Ended(connection.why) from None
    except TooLate:
        linux.send_signal(connection.pid, signal.SIGINT)
        with suppress(Gone, Malformed, TooLate):
            connection.channel.receive(_GRACE_SECONDS)
        raise
