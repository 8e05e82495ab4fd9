"""A connection between two processes: JSON and raw bytes, whose sizes are checked before they are read."""

from __future__ import annotations

import array
import json
import math
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

MOST_TEXT = 16 << 20
MOST_BYTES = 256 << 20

_HEADER = struct.Struct("<QQ")
_CREDENTIALS = struct.Struct("3i")
_TICK = 0.05


class Gone(Exception):
    """The other side ended."""


class TooLate(Exception):
    """The other side did not answer in time."""


class Malformed(Exception):
    """The other side sent something that is no message of ours; the text says what."""


@dataclass
class Message:
    """One message: its fields, the raw bytes that go with it, and files that were passed along."""

    fields: dict
    payload: bytes = b""
    files: list[int] = field(default_factory=list)


class Channel:
    """One end of a connection. ``pid`` is the process that sent the last message, as the kernel says."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self.pid = 0
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)

    def send(
        self, fields: dict, buffers: Sequence = (), files: Sequence[int] = (), seconds: float | None = None
    ) -> None:
        """Send one message. Raises Gone or TooLate."""
        text = json.dumps(fields).encode()
        head = _HEADER.pack(len(text), sum(len(part) for part in buffers)) + text
        deadline = None if seconds is None else time.monotonic() + seconds
        for number, part in enumerate([head, *buffers]):
            left = memoryview(part).cast("B") if len(part) else b""
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
            while len(left):
                try:
                    sent = self.socket.sendmsg([left[: 1 << 20]], ancillary if number == 0 else [])
                    left, ancillary = left[sent:], []
                except BlockingIOError:
                    self._wait(select.POLLOUT, deadline, None)
                except OSError as error:
                    raise Gone from error

    def receive(self, seconds: float | None = None, meanwhile: Callable[[], None] | None = None) -> Message:
        """The next message. ``meanwhile`` is called now and then while nothing comes.

        Raises Gone, TooLate or Malformed.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        files: list[int] = []
        try:
            text_size, payload_size = _HEADER.unpack(self._read(_HEADER.size, deadline, meanwhile, files))
            if text_size > MOST_TEXT or payload_size > MOST_BYTES:
                raise Malformed(f"a message of {text_size + payload_size:,} bytes, which is too much")
            text = self._read(text_size, deadline, meanwhile, files)
            payload = self._read(payload_size, deadline, meanwhile, files)
            try:
                fields = json.loads(text.decode())
            except (ValueError, RecursionError) as error:
                raise Malformed("a message that is no JSON") from error
            if not isinstance(fields, dict):
                raise Malformed("a message without fields")
        except BaseException:
            for file in files:
                os.close(file)
            raise
        return Message(fields, payload, files)

    def signal(self) -> None:
        """Send a single byte: the quickest message there is. Raises Gone."""
        try:
            self.socket.send(b"!")
        except OSError as error:
            raise Gone from error

    def await_signal(self, seconds: float | None = None, meanwhile: Callable[[], None] | None = None) -> None:
        """Wait for a single byte. Raises Gone, TooLate or Malformed."""
        deadline = None if seconds is None else time.monotonic() + seconds
        if bytes(self._read(1, deadline, meanwhile, [])) != b"!":
            raise Malformed("something else than a signal")

    def _read(
        self, size: int, deadline: float | None, meanwhile: Callable | None, files: list[int]
    ) -> bytearray:
        content = bytearray(size)
        view = memoryview(content)
        while len(view):
            try:
                number, ancillary, _, _ = self.socket.recvmsg_into(
                    [view[: 1 << 20]], socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(4 * 8)
                )
            except BlockingIOError:
                self._wait(select.POLLIN, deadline, meanwhile)
                continue
            except OSError as error:
                raise Gone from error
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    files.extend(array.array("i", data[: len(data) // 4 * 4]))
                elif level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                    self.pid = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0]
            if not number:
                raise Gone
            view = view[number:]
        return content

    def _wait(self, event: int, deadline: float | None, meanwhile: Callable | None) -> None:
        poll = select.poll()
        poll.register(self.socket, event)
        while True:
            left = math.inf if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise TooLate
            tick = min(left, _TICK if meanwhile else 3600)
            if poll.poll(1000 * tick):
                return
            if meanwhile:
                meanwhile()

    def close(self) -> None:
        self.socket.close()


def pair() -> tuple[Channel, socket.socket]:
    """A connection: one end as a channel, the other to be given away."""
    mine, other = socket.socketpair()
    return Channel(mine), other
