"""The judge's handle on a process that runs somebody's cells: start, ask, watch, copy and replace it."""

from __future__ import annotations

import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import psutil

from . import linux
from .channel import Channel, Frame, Gone, Malformed, TooLate, pair
from .linux import kill
from .messages import CellShown, Fork, Hello, RunCell, Shown, Spawn, Spawned, parse

if TYPE_CHECKING:
    from typing_extensions import TypeForm

START_SECONDS = 30.0
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
    machine has no namespaces). What is suspicious is added to ``suspicious``.
    """

    def __init__(
        self, channel: Channel, first: int, to_first: socket.socket | None, suspicious: list[str]
    ) -> None:
        self.channel, self.first, self.to_first, self.suspicious = channel, first, to_first, suspicious
        parse(channel.receive(START_SECONDS), Hello)
        self.pid = channel.pid
        self.why = ""
        self._watched = 0.0

    def reply(self, kind: TypeForm[M], seconds: float | None) -> tuple[M, Frame]:
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
            return NUMBER.unpack(self.to_first.recv(NUMBER.size))[0]
        except (OSError, struct.error):
            raise Ended("the first process of its namespaces was gone") from None

    def watch(self) -> None:
        """End all processes of its namespaces where they use more than their share."""
        if time.monotonic() < self._watched + _WATCH_SECONDS:
            return
        self._watched = time.monotonic()
        members = linux.with_descendants(self.first)
        if len(members) > linux.PROCESSES:
            self.end_all(f"it started more than {linux.PROCESSES} processes")
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


class AnswerProcess:
    """A process that has run the notebook's cells so far, and is replaced when it is lost.

    Races are run by copies of it, which are forks. A process with threads cannot be forked safely, so in
    place of a copy of one a fresh process runs the same cells again.
    """

    def __init__(self, forkserver: Channel, suspicious: list[str], assignment: str) -> None:
        self._forkserver, self.suspicious, self._assignment = forkserver, suspicious, assignment
        self.cells: list[str] = []
        self.connection: Connection | None = None

    def run(self, source: str, seconds: float) -> Sequence[Shown]:
        """Run a cell; what it showed, as its process tells it.

        Raises TooLate or Ended; the cell is undone then.
        """
        try:
            shown = _run_cell(self.use(seconds), source, seconds)
        except (TooLate, Ended):
            self.end()
            raise
        self.cells.append(source)
        return shown

    def use(self, seconds: float) -> Connection:
        """The process itself, or a fresh one in its state where it was lost. Raises Ended."""
        if self.connection is None:
            self.connection = self._fresh(seconds)
        return self.connection

    def _fresh(self, seconds: float) -> Connection:
        """A new process that has run the same cells; those that fail now are left out from now on."""
        while True:
            connection = self._start()
            for source in list(self.cells):
                try:
                    _run_cell(connection, source, seconds)
                except (TooLate, Ended):
                    connection.end()
                    kill(connection.first)
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
        try:
            return Connection(channel, reply.pid, to_first if reply.namespaces else None, self.suspicious)
        except (Gone, TooLate, Malformed):
            kill(reply.pid)
            raise Ended("its process could not be started") from None

    def start_copy(self, seconds: float) -> Callable[[], Connection]:
        """Start a process in the state after the last cell; gives what waits for it. Both raise Ended."""
        original = self.use(seconds)
        if _threads(original.pid) != 1:
            fresh = self._fresh(seconds)
            return lambda: fresh
        channel, other = pair()
        try:
            with other:
                original.channel.send(Fork(), files=[other.fileno()], seconds=START_SECONDS)
        except (Gone, TooLate):
            raise Ended("its process was gone") from None

        def wait() -> Connection:
            try:
                return Connection(channel, original.first, original.to_first, self.suspicious)
            except (Gone, TooLate, Malformed):
                self.end()
                raise Ended("its process could not be copied") from None

        return wait

    def end(self) -> None:
        """End the process and all of its namespaces; the next use starts a fresh one."""
        if self.connection:
            self.connection.end()
            kill(self.connection.first)
            self.connection = None


def _run_cell(connection: Connection, source: str, seconds: float) -> Sequence[Shown]:
    try:
        connection.channel.send(RunCell(source), seconds=seconds)
        return connection.reply(CellShown, seconds)[0].outputs
    except Gone:
        raise Ended(connection.why) from None
    except TooLate:
        linux.send_signal(connection.pid, signal.SIGINT)
        with suppress(Gone, Malformed, TooLate):
            connection.channel.receive(_GRACE_SECONDS)
        raise


def _threads(pid: int) -> int | None:
    with suppress(psutil.Error):
        return psutil.Process(pid).num_threads()
    return None
