"""The answer's process: it runs a student's code (or the given version), and answers the judge's requests.

Nothing that this process says is trusted: whoever owns the code in it owns the process. The judge checks
values itself, takes times from the kernel, and reads every answer as data.
"""

import functools
import gc
import mmap
import operator
import os
import random
import socket
import sys
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...judging import calls
from ...measuring.costs import Costs, count_in_threads, counting
from ..walls import linux
from ..wire import messages
from ..wire.arguments import Arguments
from ..wire.changed_inputs import Watched
from ..wire.channel import Channel, Frame, Gone
from ..wire.decode import PROBES
from ..wire.encode import Results, ResultsInPlace
from ..wire.outputs import Outputs
from .cells import CellShell

MOST_WARNINGS = 5

# What Python calls for a special method: an object may be iterated because it has `__getitem__`, and is true
# because it has no `__len__`.
PROTOCOLS: dict[str, Callable[..., Any]] = {
    "__bool__": bool,
    "__contains__": operator.contains,
    "__getitem__": operator.getitem,
    "__iter__": iter,
    "__len__": len,
    "__next__": next,
    "__setitem__": operator.setitem,
}

_HEARD = [
    ("ignore", None, ResourceWarning, None, 0),  # files of ours, closed when this process began
    ("default", None, Warning, None, 0),
]
_PROBES = [getattr(torch.ops.aten, name).default for name in PROBES]
_PROBED = torch.ones(())
_SHOWN = ("text/plain", "image/png", "image/jpeg")


class AnswerProcess:
    """Serves the judge over a channel, in a process that holds the state of a student's notebook."""

    def __init__(self, channel: Channel, shell: CellShell) -> None:
        self.channel, self.shell = channel, shell
        count_in_threads()
        self.objects: dict[int, object] = {}
        # Results and inputs of calls that wanted gradients.
        self.graphs: list[tuple[list[torch.Tensor], list[torch.Tensor]]] = []
        self.forks: list[int] = []
        # Inputs and result of the last call: while it is looked at, nothing of it goes away.
        self.held: list[Any] = []
        # In a race:
        self.memory: mmap.mmap | bytes = b""
        self.arguments = Arguments(b"", [], self.objects)
        self.function: Callable[..., object] | None = None
        self.made: list[tuple[object, Results]] = []
        self.moving: list[torch.Tensor] = []

    def serve(self) -> None:
        """Answer until the judge goes away."""
        while True:
            try:
                frame = self.channel.receive()
                request = messages.parse(frame, messages.Request)
                getattr(self, str(request.__struct_config__.tag))(request, frame)
            except KeyboardInterrupt:  # it came too late for the cell that it was meant for
                continue
            except Gone:
                return

    def on_files(self, request: messages.TakeFiles, frame: Frame) -> None:
        """Put files beside the notebook."""
        for name, content in request.files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(content)
        self.channel.send(messages.Hello())

    def on_cell(self, request: messages.RunCell, frame: Frame) -> None:
        """Run a cell of the notebook."""
        self.channel.send(messages.CellShown(list(shown(self.shell.run(request.source)))))

    def on_fork(self, request: messages.Fork, frame: Frame) -> None:
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
        seed_anew()
        self.channel.send(messages.Hello())

    def on_look(self, request: messages.Look, frame: Frame) -> None:
        """Say what a name or an attribute stands for."""
        results = Results([], self.keep)
        try:
            found = self.target(request.target)
        except (KeyError, AttributeError) as error:
            self.channel.send(raised(error))
            return
        node = messages.ObjectNode(None, "function") if callable(found) else results.node(found)
        self.channel.send(messages.Found(node), results.buffers)

    def keep(self, value: object) -> int:
        """Hold an object that cannot travel; its number stands for it."""
        self.objects[len(self.objects)] = value
        return len(self.objects) - 1

    def on_settle(self, request: messages.Settle, frame: Frame) -> None:
        """Make ready for a call whose memory is looked at from outside."""
        self.held.clear()
        gc.collect()
        gc.freeze()  # the collector would touch all that is there
        linux.return_free_memory()
        self.channel.send(messages.Hello())

    def on_call(self, request: messages.Call, frame: Frame) -> None:
        """Call a function, an object or a method on the judge's inputs."""
        said: list[str] = []
        self.held.clear()
        self.shell.outputs = Outputs(100_000)
        reply: messages.Message
        buffers: list[memoryview] = []
        try:
            counted = graph = None
            with self.listening(said):
                arguments = Arguments(mapped(frame), request.places, self.objects)
                given = [arguments.value(node) for node in request.args]
                named = {name: arguments.value(node) for name, node in request.kwargs.items()}
                watched = Watched([*given, *named.values()])
                function = self.target(request.target)
                results = Results(arguments.storages, self.keep)
                with nullcontext() if request.probe is None else counting(given, named) as cost:
                    if cost and request.probe is not None:
                        cost.copies_matter = request.copies
                        probe(request.probe)
                    node = results.node(result := function(*given, **named))  # some work when read
                    changed = watched.changed(results)
                if cost:
                    counted = counted_costs(cost)
                    self.held[:] = arguments, given, named, result
                if results.differentiable and arguments.leaves:
                    leaves = [arguments.leaves[number] for number in sorted(arguments.leaves)]
                    self.graphs.append((results.differentiable, leaves))
                    graph = len(self.graphs) - 1
            buffers = results.buffers
            reply = messages.Returned(node, graph, counted, self.said(said), changed)
        except BaseException as error:
            reply, buffers = raised(error, self.said(said)), []
        self.channel.send(reply, buffers)

    def on_again(self, request: messages.SendAgain, frame: Frame) -> None:
        """Send the values of the last call's result, as they are now."""
        arguments, _, _, result = self.held
        results = Results(arguments.storages, self.keep)
        self.channel.send(messages.Found(results.node(result)), results.buffers)

    def said(self, lines: list[str]) -> messages.Said:
        """What the call warned of, and what it printed."""
        printed = [item for item in shown(self.shell.outputs.items) if isinstance(item, messages.Stream)]
        return messages.Said(lines[:MOST_WARNINGS], printed)

    def target(self, target: messages.Target) -> Any:
        """What a name or an attribute stands for, or an object: what is looked for, or to be called."""
        if target.of is None:
            return self.shell.user_ns[target.name]
        found = self.objects[target.of]
        if target.name is None:
            return found
        if protocol := PROTOCOLS.get(target.name):
            return functools.partial(protocol, found)
        return getattr(found, target.name)

    def on_backward(self, request: messages.Backward, frame: Frame) -> None:
        """The gradients of the inputs of an earlier call, for given gradients of its results."""
        try:
            results, leaves = self.graphs[request.graph]
            arguments = Arguments(mapped(frame), request.places, self.objects)
            given = [arguments.value(node) for node in request.args]
            # Of numbers: for gradients of tensors torch loads 500 modules, which stay in this process.
            numbers = [
                (result * gradient.conj()).sum().real
                for result, gradient in zip(results, given, strict=True)
                if gradient is not None
            ]
            found = torch.autograd.grad(numbers, leaves, allow_unused=True, retain_graph=True)
            answer = Results([], self.keep)
            node = answer.node([None if gradient is None else gradient.detach() for gradient in found])
            self.channel.send(messages.Found(node), answer.buffers)
        except BaseException as error:
            self.channel.send(raised(error))

    # A race: one call after the other, each of which the judge gives only when it has the last one's result.

    def on_race(self, request: messages.PrepareRace, frame: Frame) -> None:
        """Before a race: map the memory that all inputs will be put into."""
        self.memory = mapped(frame)
        if self.function is None:
            linux.keep_free_memory()
            linux.let_others_read()  # the judge reads results where they are
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (for the rest of its life)
            warnings.simplefilter("ignore")
            torch.set_num_threads(1)
            gc.disable()
            tracemalloc.stop()  # it slows the way to and from here, which is charged
            self.function = self.shell.user_ns[request.name]
            # Where the free memory lies is the same in all copies of a process. Arrays that stay move it.
            sizes = [random.SystemRandom().randrange(1 << power) for power in range(6, 23)]
            self.moving = [torch.empty(size, dtype=torch.uint8) for size in sizes]
        self.channel.send(messages.Hello())

    def on_race_inputs(self, request: messages.RaceInputs, frame: Frame) -> None:
        """Make the inputs of a call ready, whose values are not there yet."""
        if not request.keep:
            self.made.clear()
        self.arguments = Arguments(self.memory, request.places, self.objects)
        self.arguments.ready = [self.arguments.value(node) for node in request.tensors]
        self.channel.send(messages.Hello())

    def on_race_call(self, request: messages.RaceCall, frame: Frame) -> None:
        """Do one call. Its result stays where it is, for the judge to read, until the next one."""
        try:
            given = [self.arguments.value(node) for node in request.args]
            if request.work:
                assert self.function is not None  # on_race came first
                result = self.function(*given)
            else:
                result, _ = self.made[-1]
            results = ResultsInPlace(self.arguments.storages, self.keep)
            node = results.node(result)
            self.made.append((result, results))
        except BaseException as error:
            self.channel.send(raised(error))
            return
        self.channel.send(messages.Found(node))

    @contextmanager
    def listening(self, said: list[str]) -> Iterator[None]:
        """Collect what the code prints, and what it warns of."""
        with self.shell.streams(), warnings.catch_warnings(record=True) as caught:
            warnings.filters[:] = _HEARD  # type: ignore[index]  # a fifth of the time of simplefilter
            try:
                yield
            finally:
                said += [words(f"{item.category.__name__}: {item.message}") for item in caught]


def seed_anew() -> None:
    """Give a fork random numbers of its own."""
    seed = int.from_bytes(os.urandom(4), "little")
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)


def probe(number: int) -> None:
    """Do one operation of the judge's, which must be among those that are counted."""
    operation = _PROBES[number]
    with torch._C.DisableTorchFunction():  # it would only be slower
        operation(*[_PROBED] * len(operation._schema.arguments))


def counted_costs(cost: Costs) -> messages.CountedCosts:
    """What a call cost, as a message; the names in it are cut to the length that it takes."""
    found = {name: getattr(cost, name) for name in messages.CountedCosts.__struct_fields__}
    for kind in ("operations", "views"):
        found[kind] = {name[:100]: number for name, number in dict.items(found[kind])}
    return messages.CountedCosts(**found)


def mapped(frame: Frame) -> mmap.mmap | bytes:
    """The memory whose file came with a frame, all in place; none where none was needed."""
    if not frame.files:
        return b""
    (file,) = frame.files
    memory = mmap.mmap(file, 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
    os.close(file)
    return memory


def shown(items: list[dict[str, Any]]) -> Iterator[messages.Shown]:
    """A cell's outputs as messages: text and pictures; other forms of a display stay behind."""
    for item in items:
        match item["output_type"]:
            case "stream":
                yield messages.Stream(item["name"], text(item["text"]))
            case "error":
                lines = [text(line) for line in item["traceback"]]
                yield messages.ErrorShown(words(item["ename"]), text(item["evalue"]), lines)
            case kind:
                data = {name: text(value) for name, value in item["data"].items() if name in _SHOWN}
                if data:
                    yield messages.Display(kind, data)


def text(value: object) -> str:
    """Text that can be sent: a lone surrogate cannot."""
    return str(value).encode("utf-8", "replace").decode()


def words(value: object) -> str:
    """The beginning of a text."""
    return text(value)[: messages.MOST_WORDS]


def raised(error: BaseException, said: messages.Said | None = None) -> messages.Raised:
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
    return messages.Raised(types, message, words(told), by_torch, said or messages.Said())
