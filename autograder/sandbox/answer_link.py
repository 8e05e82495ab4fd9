"""The judge's handles on the processes that run somebody's code: start, copy, ask, watch and end them."""

from __future__ import annotations

import os
import signal
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress

from . import linux
from .channel import Channel, Gone, Malformed, Message, TooLate, pair

START_SECONDS = 30.0
ROOM_BYTES = 3 << 30
_GRACE = 3.0
NUMBER = struct.Struct("<q")
_LOOK_EVERY = 0.25


class Ended(Exception):
    """The process is gone, or said something that no process of ours says; the text says why."""


class Worker:
    """One process on the other side of a channel.

    ``room`` is the first process of its room, and ``warden`` a connection to it, where there are rooms.
    """

    def __init__(self, channel: Channel, room: int, warden: socket.socket | None, template: Template) -> None:
        self.channel, self.room, self.template, self.warden = channel, room, template, warden
        channel.receive(START_SECONDS)
        self.pid = channel.pid
        self._looked = 0.0
        self.why = ""

    def ask(self, fields: dict, buffers=(), files=(), seconds: float | None = None) -> Message:
        """Send a message and wait for the answer. Raises TooLate, or Ended where there is no sound answer."""
        try:
            self.channel.send(fields, buffers, files, seconds)
            return self.channel.receive(seconds, self.watch)
        except Gone:
            raise Ended(self.why) from None
        except Malformed as error:
            self.template.suspicious.append(f"The answer's process sent {error}.")
            self.end()
            raise Ended(f"it sent {error}") from None

    def last_pid(self) -> int:
        """The number of the newest process or thread in the room; it says whether there was a new one."""
        if self.warden is None:
            return 0
        try:
            self.warden.send(b"?")
            return NUMBER.unpack(self.warden.recv(NUMBER.size))[0]
        except (OSError, struct.error):
            raise Ended("its room was gone") from None

    def watch(self) -> None:
        """End the room where it uses more than its share."""
        if time.monotonic() < self._looked + _LOOK_EVERY:
            return
        self._looked = time.monotonic()
        members = linux.family(self.room)
        if len(members) > linux.PROCESSES:
            self.stop_room(f"it started more than {linux.PROCESSES} processes")
        if linux.hidden_bytes(members) > linux.DISK:
            self.stop_room(f"it kept more than {linux.DISK >> 20} MiB in files without a name")
        resident = [int(linux.status(pid).get("VmRSS", "0").split()[0]) << 10 for pid in members]
        if sum(resident) > ROOM_BYTES and sum(map(linux.private_bytes, members)) > ROOM_BYTES:
            self.stop_room(f"it used more than {ROOM_BYTES >> 30} GiB of memory")

    def stop_room(self, why: str) -> None:
        """End all processes of the room, for a reason that the student should read."""
        self.why = why
        self.template.suspicious.append(f"The answer's processes were stopped: {why}.")
        kill(self.room)

    def end(self) -> None:
        """End this process."""
        with suppress(OSError):
            self.channel.close()
        kill(self.pid)

    def await_end(self) -> None:
        """Wait until this process, which was ended, is gone."""
        deadline = time.monotonic() + _GRACE
        while alive(self.pid) and time.monotonic() < deadline:
            time.sleep(2e-4)


class Template:
    """A process that has run the notebook's cells so far, and is replaced when it is lost.

    Races are run by copies of it, which are forks. A process with threads cannot be forked safely, so in
    place of a copy of one a fresh process runs the same cells again.
    """

    def __init__(self, spawner: Channel, suspicious: list[str], home: str) -> None:
        self._spawner, self.suspicious, self._home = spawner, suspicious, home
        self.cells: list[str] = []
        self.process: Worker | None = None

    def run(self, source: str, seconds: float) -> list:
        """Run a cell; what it showed, as its process tells it.

        Raises TooLate or Ended; the cell is undone then.
        """
        try:
            outputs = self._cell(self.use(seconds), source, seconds)
        except (TooLate, Ended):
            self.end()
            raise
        self.cells.append(source)
        return outputs

    def use(self, seconds: float) -> Worker:
        """The process itself; a fresh one in the state after the last cell, where it was lost."""
        if self.process is None:
            self.process = self._fresh(seconds)
        return self.process

    def _cell(self, process: Worker, source: str, seconds: float) -> list:
        try:
            reply = process.ask({"op": "cell", "source": source}, seconds=seconds)
        except TooLate:
            os.kill(process.pid, signal.SIGINT)
            with suppress(Ended, TooLate):
                process.channel.receive(_GRACE)
            raise
        return reply.fields.get("outputs", [])

    def _fresh(self, seconds: float) -> Worker:
        """A new process that has run the same cells; those that fail now are left out from now on."""
        channel, other = pair()
        warden, first = socket.socketpair()
        warden.settimeout(START_SECONDS)
        self._spawner.send({"op": "spawn", "home": self._home}, files=[other.fileno(), first.fileno()])
        other.close()
        first.close()
        reply = self._spawner.receive(START_SECONDS).fields
        room = reply["pid"]
        try:
            process = Worker(channel, room, warden if reply["rooms"] else None, self)
        except (Gone, TooLate, Malformed):
            kill(room)
            raise Ended("its process could not be started") from None
        for source in list(self.cells):
            try:
                self._cell(process, source, seconds)
            except (TooLate, Ended):
                process.end()
                kill(room)
                self.cells.remove(source)
                return self._fresh(seconds)
        return process

    def start_copy(self, seconds: float) -> Callable[[], Worker]:
        """Start a process in the state after the last cell; gives what waits for it. Both raise Ended."""
        if linux.status(self.use(seconds).pid).get("Threads") != "1":
            fresh = self._fresh(seconds)
            return lambda: fresh
        channel, other = pair()
        try:
            self.process.channel.send({"op": "fork"}, files=[other.fileno()], seconds=START_SECONDS)
        except (Gone, TooLate):
            raise Ended("its process was gone") from None
        finally:
            other.close()
        room, warden = self.process.room, self.process.warden

        def wait() -> Worker:
            try:
                return Worker(channel, room, warden, self)
            except (Gone, TooLate, Malformed):
                self.end()
                raise Ended("its process could not be copied") from None

        return wait

    def end(self) -> None:
        """End the process and its room; the next use starts a fresh one."""
        if self.process:
            self.process.end()
            kill(self.process.room)
            self.process = None


def alive(pid: int) -> bool:
    """Whether a process still runs; one that only waits to be counted does not."""
    return linux.state(pid) not in "ZX"


def kill(pid: int) -> None:
    """End a process, if it is still there."""
    send(pid, signal.SIGKILL)


def send(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    if pid > 1:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def take(number: int) -> Channel:
    """A channel over an inherited file."""
    return Channel(socket.socket(fileno=number))
