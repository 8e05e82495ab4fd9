"""The process that runs a student's code (or the given version), and answers the judge's questions about it.

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
from contextlib import contextmanager, suppress

import numpy as np
import torch

from ..judging import calls
from ..measuring.costs import counting
from .cells import CellShell, Outputs
from .channel import Channel, Gone, Message
from .wire import Arguments, Results

MOST_SAID = 5
MOST_WORDS = 2000


class Agent:
    """Serves the judge over a channel, in a process that holds the state of a student's notebook."""

    def __init__(self, channel: Channel, shell: CellShell) -> None:
        self.channel, self.shell = channel, shell
        self.objects: dict[int, object] = {}
        self.graphs: list[tuple[list, list]] = []  # results and inputs of calls that wanted gradients
        self.forks: list[int] = []
        self.arena: mmap.mmap | None = None
        self.made: list[object] = []
        self.problem: dict | None = None

    def serve(self) -> None:
        """Answer until the judge goes away."""
        while True:
            try:
                message = self.channel.receive()
                getattr(self, f"on_{message.fields['op']}")(message)
            except KeyboardInterrupt:  # it came too late for the cell that it was meant for
                continue
            except Gone:
                return

    def on_cell(self, message: Message) -> None:
        """Run a cell of the notebook."""
        self.channel.send({"outputs": self.shell.run(message.fields["source"])})

    def on_fork(self, message: Message) -> None:
        """Copy this process; the copy serves the connection that came with the message."""
        (file,) = message.files
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
        self.channel.send({"hello": True})

    def on_look(self, message: Message) -> None:
        """Say what a name or an attribute stands for."""
        fields = message.fields
        if "object" in fields:
            found = getattr(self.objects[fields["object"]], fields["name"], _NOTHING)
        else:
            found = self.shell.user_ns.get(fields["name"], _NOTHING)
        results = Results(None, self.keep)
        if found is _NOTHING:
            self.channel.send({"kind": "missing"})
        elif callable(found):
            self.channel.send({"kind": "callable", "type": type(found).__name__[:80]})
        else:
            node = results.node(found)
            self.channel.send({"kind": "value", "value": node}, results.buffers)

    def keep(self, value: object) -> int:
        """Hold an object that cannot travel; its number stands for it."""
        self.objects[len(self.objects)] = value
        return len(self.objects) - 1

    def on_call(self, message: Message) -> None:
        """Call a function, an object or a method on the judge's inputs."""
        fields = message.fields
        said: list[str] = []
        self.shell.outputs = Outputs(100_000)
        reply: dict = {}
        buffers: list = []
        try:
            with self.mapped(message) as memory, self.listening(said):
                arguments = Arguments(memory, fields["places"], self.objects)
                given = [arguments.value(node) for node in fields["args"]]
                named = {name: arguments.value(node) for name, node in fields["kwargs"].items()}
                function = self.target(fields)
                if fields["probes"] is None:
                    result = function(*given, **named)
                else:
                    with counting(given, named) as cost:
                        for _ in range(fields["probes"]):
                            torch.special.bessel_j0(_PROBE)
                        result = function(*given, **named)
                    reply["costs"] = {
                        "operations": dict(cost.operations),
                        "views": dict(cost.views),
                        "bytes": cost.bytes,
                        "peak_bytes": cost.peak_bytes,
                        "copies": cost.copies,
                        "transfers": cost.transfers,
                        "syncs": cost.syncs,
                    }
                results = Results(arguments, self.keep)
                reply["result"] = results.node(result)
                buffers = results.buffers
                if results.differentiable and arguments.leaves:
                    leaves = [arguments.leaves[number] for number in sorted(arguments.leaves)]
                    self.graphs.append((results.differentiable, leaves))
                    reply["graph"] = len(self.graphs) - 1
        except BaseException as error:
            reply = {"error": describe(error)}
            buffers = []
        reply["said"] = said[:MOST_SAID]
        reply["shown"] = [item for item in self.shell.outputs.items if item["output_type"] == "stream"]
        self.channel.send(reply, buffers)

    def target(self, fields: dict) -> object:
        """The function that is to be called."""
        if "object" not in fields:
            return self.shell.user_ns[fields["name"]]
        found = self.objects[fields["object"]]
        return found if fields["name"] is None else getattr(found, fields["name"])

    def on_backward(self, message: Message) -> None:
        """The gradients of the inputs of an earlier call, for given gradients of its results."""
        try:
            with self.mapped(message) as memory:
                results, leaves = self.graphs[message.fields["graph"]]
                arguments = Arguments(memory, message.fields["places"], self.objects)
                given = [arguments.value(node) for node in message.fields["args"]]
                pairs = [pair for pair in zip(results, given, strict=True) if pair[1] is not None]
                found = torch.autograd.grad(
                    [result for result, _ in pairs],
                    leaves,
                    [gradient for _, gradient in pairs],
                    allow_unused=True,
                    retain_graph=True,
                )
                answer = Results(None, self.keep)
                node = answer.node([None if gradient is None else gradient.detach() for gradient in found])
            self.channel.send({"result": node}, answer.buffers)
        except BaseException as error:
            self.channel.send({"error": describe(error)})

    # A race: inputs for a block of calls, the block, its results. The judge times each of the three.

    def on_course(self, message: Message) -> None:
        """Before a race: map the memory that all inputs will be put into."""
        (file,) = message.files
        self.arena = mmap.mmap(file, 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        os.close(file)
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (for the rest of its life)
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        gc.disable()
        self.function = self.shell.user_ns[message.fields["name"]]
        self.channel.send({"ready": True})

    def on_inputs(self, message: Message) -> None:
        made: list[object] = []
        self.made = made
        self.arguments = Arguments(self.arena, message.fields["places"], self.objects)
        value = self.arguments.value
        given_to = [tuple([value(node) for node in nodes]) for nodes in message.fields["calls"]]
        prepared = [given_to[number] for number in message.fields["part"]]
        function = self.function
        self.channel.signal()
        self.channel.await_signal()
        try:
            for given in prepared:
                made.append(function(*given))
        except BaseException as error:
            self.problem = describe(error)
        self.channel.signal()

    def on_fetch(self, message: Message) -> None:
        if self.problem:
            self.channel.send({"error": self.problem})
            return
        results = Results(self.arguments, self.keep)
        made = itertools.islice(itertools.cycle(self.made), message.fields["number"] if self.made else 0)
        nodes = results.stacked(list(made))
        self.channel.send({"result": nodes}, results.buffers)

    @contextmanager
    def mapped(self, message: Message):
        (file,) = message.files
        memory = mmap.mmap(file, 0)
        os.close(file)
        yield memory

    @contextmanager
    def listening(self, said: list[str]):
        """Collect what the code prints, and what it warns of."""
        with self.shell.streams(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            warnings.simplefilter("ignore", ResourceWarning)  # files of ours, closed when this process began
            try:
                yield
            finally:
                said += [f"{item.category.__name__}: {item.message}"[:MOST_WORDS] for item in caught]


_NOTHING = object()
_PROBE = torch.ones(())


def describe(error: BaseException) -> dict:
    """An error as plain data: the names of its class and those above it, and what the student should read."""
    message = str(error)[:MOST_WORDS]
    told = f"{type(error).__name__}: {message}"
    by_torch = False
    with suppress(Exception):
        told = calls.explain(error)
        by_torch = isinstance(error, NotImplementedError) and calls.raised_by_torch(error)
    return {
        "types": [kind.__name__[:80] for kind in type(error).__mro__],
        "message": message,
        "told": told[:MOST_WORDS],
        "by_torch": by_torch,
    }
