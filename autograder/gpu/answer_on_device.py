"""The process that runs one side of a race on a device, in a context of its own; nothing it says is believed.

``python -m autograder.gpu.answer_on_device FILE DEVICE`` loads torch and forks for each launch of a race; who
asks is on the other end of the socket with the number FILE.
"""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from ..measuring.gpus import wait
from ..sandbox.answers.answer_process import raised, seed_anew
from ..sandbox.walls import linux
from ..sandbox.wire import messages
from ..sandbox.wire.arguments import Arguments
from ..sandbox.wire.channel import Channel, Gone, over_file
from ..sandbox.wire.encode import Results, flat_bytes
from . import device_memory

SPIN_SECONDS = 2e-3  # that either side waits without giving up its core: to get it back takes long


class Begin(messages.Message, frozen=True):
    """Run these cells, in which the function ``name`` is defined, and serve the connection that comes along.

    The memory has ``size`` bytes for inputs and as many for results; ``ticket`` and the second file open it.
    """

    cells: list[str]
    name: str
    size: int
    ticket: bytes


class _ResultsOnDevice(Results):
    """A result, copied into the judge's ``memory`` on the device."""

    def __init__(self, storages: list[torch.Tensor], memory: torch.Tensor) -> None:
        super().__init__(storages, lambda value: 0)
        self._memory = memory

    def _values(self, data: torch.Tensor) -> tuple[int, int]:
        return self._put(flat_bytes(data))

    def _buffer(self, data: memoryview) -> tuple[int, int]:
        return self._put(torch.from_numpy(np.frombuffer(data, np.uint8).copy()))

    def _put(self, values: torch.Tensor) -> tuple[int, int]:
        start, size = self.size, values.numel()
        self.size += -(-size // 8) * 8
        if self.size > self._memory.numel():
            raise ValueError(f"the result has more than {self._memory.numel() >> 20} MiB.")
        self._memory[start : start + size].copy_(values)
        return start, size


class _Answer:
    """One launch: the cells have run, and calls are answered one after the other."""

    def __init__(self, channel: Channel, begin: Begin, files: Sequence[int], device: str) -> None:
        self._channel, self._device = channel, device
        memory = device_memory.opened(2 * begin.size, device, begin.ticket, files)
        self._inputs, self._results = memory[: begin.size], memory[begin.size :]
        names: dict[str, Any] = {"__name__": "__main__"}
        for cell in begin.cells:
            exec(compile(cell, "cell", "exec", dont_inherit=True), names)
        self._function: Callable[..., Any] = names[begin.name]
        self._last: Any = None

    def serve(self) -> None:
        """Answer until the judge goes away."""
        while True:
            self._channel.spin(SPIN_SECONDS)
            request = messages.parse(self._channel.receive(), messages.RaceInputs | messages.RaceCall)
            try:
                if isinstance(request, messages.RaceInputs):
                    self._arguments = Arguments(self._inputs, request.places, {})
                    self._arguments.ready = [self._arguments.value(node) for node in request.tensors]
                    self._channel.send(messages.Hello())
                else:
                    self._channel.send(messages.Found(self._call(request)))
            except Gone:
                raise
            except BaseException as error:
                self._channel.send(raised(error))

    def _call(self, request: messages.RaceCall) -> messages.Value:
        """Do one call, or give the last result once more; all its work has ended when this returns."""
        if request.work:
            self._last = self._function(*map(self._arguments.value, request.args))
        results = _ResultsOnDevice(self._arguments.storages, self._results)
        node = results.node(self._last)
        wait(self._device)
        return node


def main(file: str, device: str) -> None:
    """Start a fresh process for each launch; what the last one left behind is ended."""
    control = over_file(int(file))
    linux.adopt_orphans()
    linux.limit_resources()
    linux.set_dumpable(False)  # no launch looks into the process that the next ones come from
    control.send(messages.Hello())
    with suppress(Gone):
        while True:
            frame = control.receive()
            linux.end_descendants()
            if os.fork() == 0:
                control.close()
                _launch(over_file(frame.files[0]), messages.parse(frame, Begin), frame.files[1:], device)
                os._exit(0)
            for number in frame.files:
                os.close(number)


def _launch(channel: Channel, begin: Begin, files: Sequence[int], device: str) -> None:
    linux.set_dumpable(True)  # or a driver may not read what the kernel says of its own process
    seed_anew()
    torch.set_num_threads(1)
    gc.disable()
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for the rest of its life)
    with suppress(Gone):
        try:
            answer = _Answer(channel, begin, files, device)
            channel.send(messages.Hello())
        except BaseException as error:
            channel.send(raised(error))
            return
        answer.serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
