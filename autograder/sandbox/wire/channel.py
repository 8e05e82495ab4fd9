"""A connection between two processes: frames of bytes, whose sizes are checked before they are read.

What the bytes mean is not looked at here (see ``decode``).
"""

import array
import math
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

MOST_TEXT = 16 << 20
MOST_BYTES = 256 << 20
MOST_FILES = 8  # that come with one message

_HEADER = struct.Struct("<QQ")
_CREDENTIALS = struct.Struct("3i")
_ANCILLARY = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(4 * MOST_FILES)
POLL_SECONDS = 0.05

# How long to wait: so many seconds, for ever (None), or as long as a function says that some are left.
Patience: TypeAlias = float | Callable[[], float] | None


class Gone(Exception):
    """The other side ended."""


class TooLate(Exception):
    """The other side did not answer in time."""


class Malformed(Exception):
    """The other side sent something that is no message of ours; the text says what."""


@dataclass
class Frame:
    """One message as it came: its encoded text, the raw bytes that go with it, and files."""

    text: bytearray
    payload: bytearray
    files: list[int] = field(default_factory=list)


class Channel:
    """One end of a connection. ``pid`` is the process that sent the last frame, as the kernel says."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self.pid = 0
        self.poll_seconds = POLL_SECONDS
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)

    def send(
        self,
        message: object,
        buffers: Sequence[bytes | bytearray | memoryview] = (),
        files: Sequence[int] = (),
        seconds: Patience = None,
    ) -> None:
        """Send one message. Raises Gone or TooLate."""
        text = msgspec.msgpack.encode(message)
        head = _HEADER.pack(len(text), sum(len(part) for part in buffers)) + text
        left_seconds = _countdown(seconds)
        for number, part in enumerate([head, *buffers]):
            left = memoryview(part).cast("B") if len(part) else memoryview(b"")
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
            while len(left):
                try:
                    sent = self.socket.sendmsg([left[: 1 << 20]], ancillary if number == 0 else [])
                    left, ancillary = left[sent:], []
                except BlockingIOError:
                    self._wait(select.POLLOUT, left_seconds, None)
                except OSError as error:
                    raise Gone from error

    def receive(self, seconds: Patience = None, meanwhile: Callable[[], None] | None = None) -> Frame:
        """The next frame. ``meanwhile`` is called now and then while nothing comes.

        Raises Gone, TooLate or Malformed.
        """
        left = _countdown(seconds)
        files: list[int] = []
        try:
            text_size, payload_size = _HEADER.unpack(self._read(_HEADER.size, left, meanwhile, files))
            if text_size > MOST_TEXT or payload_size > MOST_BYTES:
                raise Malformed(f"a message of {text_size + payload_size:,} bytes, which is too much")
            text = self._read(text_size, left, meanwhile, files)
            payload = self._read(payload_size, left, meanwhile, files) if payload_size else bytearray()
        except BaseException:
            for file in files:
                os.close(file)
            raise
        return Frame(text, payload, files)

    def _read(
        self, size: int, left: Callable[[], float], meanwhile: Callable[[], None] | None, files: list[int]
    ) -> bytearray:
        content = bytearray(size)
        view = memoryview(content)
        while len(view):
            try:
                number, ancillary, _, _ = self.socket.recvmsg_into([view[: 1 << 20]], _ANCILLARY)
            except BlockingIOError:
                self._wait(select.POLLIN, left, meanwhile)
                continue
            except OSError as error:
                raise Gone from error
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    files.extend(array.array("i", data[: len(data) // 4 * 4]))
                elif level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                    self.pid = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0]
            if len(files) > MOST_FILES:
                raise Malformed(f"a message with more than {MOST_FILES} open files")
            if not number:
                raise Gone
            view = view[number:]
        return content

    def _wait(self, event: int, left: Callable[[], float], meanwhile: Callable[[], None] | None) -> None:
        poll = select.poll()
        poll.register(self.socket, event)
        while True:
            if (seconds := left()) <= 0:
                raise TooLate
            seconds = min(seconds, self.poll_seconds if meanwhile else 3600)
            if poll.poll(1000 * seconds):
                return
            if meanwhile:
                meanwhile()

    def spin(self, seconds: float) -> None:
        """Wait so long for a message without giving up the core."""
        end = time.monotonic() + seconds
        while not select.select([self.socket], [], [], 0)[0] and time.monotonic() < end:
            pass

    def close(self) -> None:
        self.socket.close()


def _countdown(seconds: Patience) -> Callable[[], float]:
    """What is left of these seconds, which begin now."""
    if callable(seconds):
        return seconds
    end = math.inf if seconds is None else time.monotonic() + seconds
    return lambda: end - time.monotonic()


def pair() -> tuple[Channel, socket.socket]:
    """A connection: one end as a channel, the other to be given away."""
    mine, other = socket.socketpair()
    return Channel(mine), other


def over_file(number: int) -> Channel:
    return Channel(socket.socket(fileno=number))
