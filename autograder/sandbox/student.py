"""The process that runs a student's code (or the given version), and answers the judge's requests.

Nothing that this process says is trusted: whoever owns the code in it owns the process. The judge checks
values itself, takes times from the kernel, and reads every answer as data.
"""

from __future__ import annotations

import gc
import itertools
import mmap
import os
import random
import socket
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch

from ..judging import calls
from ..measuring.costs import counting
from .arguments import Arguments
from .cells import CellShell, Outputs
from .channel import Channel, Frame, Gone
from .encode import Results
from .messages import (
    MOST_WORDS,
    Backward,
    Call,
    CellShown,
    CountedCosts,
    Display,
    ErrorShown,
    FetchResults,
    Fork,
    Found,
    Function,
    Hello,
    Look,
    Message,
    Missing,
    PrepareRace,
    RaceInputs,
    RaceReady,
    Raised,
    Request,
    Returned,
    RunCell,
    Said,
    Shown,
    Stream,
    Target,
    parse,
)

MOST_WARNINGS = 5

_NOTHING = object()
_PROBE = torch.ones(())
_SHOWN = ("text/plain", "image/png", "image/jpeg")


class Agent:
    """Serves the judge over a channel, in a process that holds the state of a student's notebook."""

    def __init__(self, channel: Channel, shell: CellShell) -> None:
        self.channel, self.shell = channel, shell
        self.objects: dict[int, object] = {}
        self.graphs: list[tuple[list, list]] = []  # results and inputs of calls that wanted gradients
        self.forks: list[int] = []
        # In a race:
        self.memory: mmap.mmap | None = None
        self.function: Callable | None = None
        self.arguments: Arguments | None = None
        self.made: list[object] = []
        self.problem: Raised | None = None

    def serve(self) -> None:
        """Answer until the judge goes away."""
        while True:
            try:
                frame = self.channel.receive()
                request = parse(frame, Request)
                getattr(self, _METHODS[type(request)])(request, frame)
            except KeyboardInterrupt:  # it came too late for the cell that it was meant for
                continue
            except Gone:
                return

    def on_cell(self, request: RunCell, frame: Frame) -> None:
        """Run a cell of the notebook."""
        self.channel.send(CellShown(list(shown(self.shell.run(request.source)))))

    def on_fork(self, request: Fork, frame: Frame) -> None:
        """Copy this process; the copy serves the connection that came with the request."""
        (file,) = frame.files
        for pid in list(self.forks):
            with suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    continue
            self.forks.remove(pid)
        pid = os.fork()
        if pid:
            self.forks.append(pid)
            os.close(file)
            return
        self.channel.close()
        self.forks = []
        self.channel = Channel(socket.socket(fileno=file))
        seed = int.from_bytes(os.urandom(4), "little")
        random.seed(seed)
        np.random.seed(seed)
        torch.default_generator.manual_seed(seed)
        self.channel.send(Hello())

    def on_look(self, request: Look, frame: Frame) -> None:
        """Say what a name or an attribute stands for."""
        if request.of is not None:
            found = getattr(self.objects[request.of], request.name, _NOTHING)
        else:
            found = self.shell.user_ns.get(request.name, _NOTHING)
        if found is _NOTHING:
            self.channel.send(Missing())
        elif callable(found):
            self.channel.send(Function())
        else:
            results = Results([], self.keep)
            self.channel.send(Found(results.node(found)), results.buffers)

    def keep(self, value: object) -> int:
        """Hold an object that cannot travel; its number stands for it."""
        self.objects[len(self.objects)] = value
        return len(self.objects) - 1

    def on_call(self, request: Call, frame: Frame) -> None:
        """Call a function, an object or a method on the judge's inputs."""
        said: list[str] = []
        self.shell.outputs = Outputs(100_000)
        reply: Message
        buffers: list = []
        try:
            counted = graph = None
            with mapped(frame) as memory, self.listening(said):
                arguments = Arguments(memory, request.places, self.objects)
                given = [arguments.value(node) for node in request.args]
                named = {name: arguments.value(node) for name, node in request.kwargs.items()}
                function = self.target(request.target)
                if request.probes is None:
                    result = function(*given, **named)
                else:
                    with counting(given, named) as cost:
                        for _ in range(request.probes):
                            torch.special.bessel_j0(_PROBE)
                        result = function(*given, **named)
                    counted = CountedCosts(
                        {name[:100]: number for name, number in cost.operations.items()},
                        {name[:100]: number for name, number in cost.views.items()},
                        cost.bytes,
                        cost.peak_bytes,
                        cost.copies,
                        cost.transfers,
                        cost.syncs,
                    )
                results = Results(arguments.storages, self.keep)
                node = results.node(result)
                if results.differentiable and arguments.leaves:
                    leaves = [arguments.leaves[number] for number in sorted(arguments.leaves)]
                    self.graphs.append((results.differentiable, leaves))
                    graph = len(self.graphs) - 1
            buffers = results.buffers
            reply = Returned(node, graph, counted, self.said(said))
        except BaseException as error:
            reply, buffers = raised(error, self.said(said)), []
        self.channel.send(reply, buffers)

    def said(self, lines: list[str]) -> Said:
        """What the call warned of, and what it printed."""
        printed = [item for item in shown(self.shell.outputs.items) if isinstance(item, Stream)]
        return Said(lines[:MOST_WARNINGS], printed)

    def target(self, target: Target) -> Any:
        """The function that is to be called."""
        if target.of is None:
            return self.shell.user_ns[target.name]
        found = self.objects[target.of]
        return found if target.name is None else getattr(found, target.name)

    def on_backward(self, request: Backward, frame: Frame) -> None:
        """The gradients of the inputs of an earlier call, for given gradients of its results."""
        try:
            with mapped(frame) as memory:
                results, leaves = self.graphs[request.graph]
                arguments = Arguments(memory, request.places, self.objects)
                given = [arguments.value(node) for node in request.args]
                pairs = [pair for pair in zip(results, given, strict=True) if pair[1] is not None]
                found = torch.autograd.grad(
                    [result for result, _ in pairs],
                    leaves,
                    [gradient for _, gradient in pairs],
                    allow_unused=True,
                    retain_graph=True,
                )
                answer = Results([], self.keep)
                node = answer.node([None if gradient is None else gradient.detach() for gradient in found])
            self.channel.send(Found(node), answer.buffers)
        except BaseException as error:
            self.channel.send(raised(error))

    # A race: inputs for a block of calls, the block, its results. The judge times each of the three.

    def on_race(self, request: PrepareRace, frame: Frame) -> None:
        """Before a race: map the memory that all inputs will be put into."""
        (file,) = frame.files
        self.memory = mmap.mmap(file, 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        os.close(file)
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (for the rest of its life)
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        gc.disable()
        self.function = self.shell.user_ns[request.name]
        self.channel.send(RaceReady())

    def on_inputs(self, request: RaceInputs, frame: Frame) -> None:
        assert self.memory is not None and self.function is not None  # on_race came first
        made: list[object] = []
        self.made = made
        arguments = self.arguments = Arguments(self.memory, request.places, self.objects)
        given_to = [tuple([arguments.value(node) for node in nodes]) for nodes in request.calls]
        prepared = [given_to[number] for number in request.part]
        function = self.function
        self.channel.signal()
        self.channel.await_signal()
        try:
            for given in prepared:
                made.append(function(*given))
        except BaseException as error:
            self.problem = raised(error)
        self.channel.signal()

    def on_fetch(self, request: FetchResults, frame: Frame) -> None:
        if self.problem:
            self.channel.send(self.problem)
            return
        assert self.arguments is not None  # on_inputs came first
        results = Results(self.arguments.storages, self.keep)
        made = itertools.islice(itertools.cycle(self.made), request.number if self.made else 0)
        node = results.stacked(list(made))
        self.channel.send(Found(node), results.buffers)

    @contextmanager
    def listening(self, said: list[str]) -> Iterator[None]:
        """Collect what the code prints, and what it warns of."""
        with self.shell.streams(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            warnings.simplefilter("ignore", ResourceWarning)  # files of ours, closed when this process began
            try:
                yield
            finally:
                said += [words(f"{item.category.__name__}: {item.message}") for item in caught]


_METHODS = {
    RunCell: "on_cell",
    Fork: "on_fork",
    Look: "on_look",
    Call: "on_call",
    Backward: "on_backward",
    PrepareRace: "on_race",
    RaceInputs: "on_inputs",
    FetchResults: "on_fetch",
}


@contextmanager
def mapped(frame: Frame) -> Iterator[mmap.mmap]:
    """The memory whose file came with a frame."""
    (file,) = frame.files
    memory = mmap.mmap(file, 0)
    os.close(file)
    yield memory


def shown(items: list[dict]) -> Iterator[Shown]:
    """A cell's outputs as messages: text and pictures; other forms of a display stay behind."""
    for item in items:
        match item["output_type"]:
            case "stream":
                yield Stream(item["name"], text(item["text"]))
            case "error":
                lines = [text(line) for line in item["traceback"]]
                yield ErrorShown(words(item["ename"]), text(item["evalue"]), lines)
            case kind:
                data = {name: text(value) for name, value in item["data"].items() if name in _SHOWN}
                if data:
                    yield Display(kind, data)


def text(value: object) -> str:
    """Text that can be sent: a lone surrogate cannot."""
    return str(value).encode("utf-8", "replace").decode()


def words(value: object) -> str:
    """The beginning of a text."""
    return text(value)[:MOST_WORDS]


def raised(error: BaseException, said: Said | None = None) -> Raised:
    """An error as plain data: the names of its class and those above it, and what the student should read."""
    message = "its message could not be read"
    with suppress(Exception):
        message = words(error)
    told = f"{type(error).__name__}: {message}"
    by_torch = False
    with suppress(Exception):
        told = calls.describe_error(error)
        by_torch = isinstance(error, NotImplementedError) and calls.raised_by_torch(error)
    types = [words(kind.__name__)[:80] for kind in type(error).__mro__][:50]
    return Raised(types, message, words(told), by_torch, said or Said())
