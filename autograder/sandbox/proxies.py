"""What a test cell has in place of a student's functions, classes and objects."""

from __future__ import annotations

import builtins
import re
from collections import Counter
from typing import TYPE_CHECKING

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..measuring.costs import Costs, counted_now
from .channel import Message
from .wire import Arena, Inputs, Reader

if TYPE_CHECKING:
    from .judge import Judge

_PROBE = "aten.special_bessel_j0"
_NUMBERS = ("bytes", "peak_bytes", "copies", "transfers", "syncs")


class AnswerEnded(RuntimeError):
    """The process that the answer ran in is gone."""

    def __init__(self, why: str) -> None:
        super().__init__("the answer ended the process that it ran in")
        self.told = (
            "The call ended the Python process that it ran in"
            + (f": {why}." if why else ".")
            + " Possible causes: `exit()` or `os._exit()`, too much memory, or a crash in a library."
        )


class Remote:
    """Something callable in the answer's process: a function, a class, an object or one of its methods."""

    def __init__(self, judge: Judge, target: dict) -> None:
        self._judge, self._target = judge, target

    def __call__(self, *args: object, **kwargs: object) -> object:
        inputs = Inputs(self._judge.number_of)
        nodes = [inputs.node(value) for value in args]
        named = {name: inputs.node(value) for name, value in kwargs.items()}
        if inputs.tensors and torch.is_grad_enabled():
            return _with_graph(self, inputs, nodes, named)
        return self._call(inputs, nodes, named)[0]

    def _call(self, inputs: Inputs, nodes: list, named: dict) -> tuple[object, Message, Reader]:
        """Send the inputs, take over what the call changed in them, and read the result."""
        cost = counted_now()
        probes = None if cost is None else self._judge.random.randint(3, 20)
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            arena = Arena(inputs.size)
            try:
                inputs.fill(arena)
                reply = self._judge.ask(
                    {
                        "op": "call",
                        "args": nodes,
                        "kwargs": named,
                        "places": inputs.places(),
                        "probes": probes,
                        **self._target,
                    },
                    files=[arena.file],
                )
                inputs.take_changes(arena)
            finally:
                arena.close()
            self._judge.pass_on(reply)
            if "error" in reply.fields:
                raise error_of(reply.fields["error"])
            reader = Reader(reply.payload, inputs, self._judge.object_of)
            result = self._judge.reading(reader, reply.fields.get("result"))
        if cost is not None:
            cost.add(self._judge.counts_of(reply.fields.get("costs"), probes))
        return result, reply, reader

    def duel(self, against: object, on: object, threshold: float, tolerance: float | None) -> object:
        """Whether this is ``threshold`` times as fast as ``against``: a Verdict, from forked launches."""
        from .timed_race import duel

        if "object" in self._target:
            raise TypeError("a race needs a function that the answer defines, not an object's method.")
        return duel(self._judge, self._target["name"], against, on, threshold, tolerance)


class RemoteObject(Remote):
    """An object that an answer made. Its attributes and methods are asked for when they are used."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._judge.look({"object": self._target["object"], "name": name})

    def _method(self, name: str, *args: object) -> object:
        return Remote(self._judge, {"object": self._target["object"], "name": name})(*args)

    def __len__(self) -> int:
        return int(self._method("__len__"))

    def __getitem__(self, key: object) -> object:
        return self._method("__getitem__", key)

    def __setitem__(self, key: object, value: object) -> None:
        self._method("__setitem__", key, value)

    def __iter__(self) -> object:
        return self._method("__iter__")

    def __next__(self) -> object:
        return self._method("__next__")


class _Call(torch.autograd.Function):
    """One call in the answer's process as a node in the judge's graph."""

    @staticmethod
    def forward(ctx, trip, *tensors):
        remote, inputs, nodes, named, box = trip
        box["result"], reply, reader = remote._call(inputs, nodes, named)
        flat = [reader.differentiable[number] for number in sorted(reader.differentiable)]
        given = {tensor.untyped_storage().data_ptr() for tensor in tensors}
        box["flat"] = flat
        ctx.remote, ctx.graph, ctx.number = remote, reply.fields.get("graph"), len(tensors)
        ctx.worker = remote._judge.worker
        # autograd must not mistake a result that lies in an input for the input itself
        return tuple(t.clone() if t.untyped_storage().data_ptr() in given else t.view_as(t) for t in flat)

    @staticmethod
    def backward(ctx, *gradients):
        judge = ctx.remote._judge
        if ctx.graph is None or judge.worker is not ctx.worker:
            return (None,) * (ctx.number + 1)
        inputs = Inputs(judge.number_of)
        nodes = [inputs.node(None if g is None else g.detach()) for g in gradients]
        arena = Arena(inputs.size)
        try:
            inputs.fill(arena)
            reply = judge.ask(
                {"op": "backward", "graph": ctx.graph, "args": nodes, "places": inputs.places()},
                files=[arena.file],
            )
        finally:
            arena.close()
        if "error" in reply.fields:
            raise error_of(reply.fields["error"])
        found = judge.reading(Reader(reply.payload, None, judge.object_of), reply.fields.get("result"))
        if not isinstance(found, list) or len(found) != ctx.number:
            raise error_of({})
        return (None, *found)


def _with_graph(remote: Remote, inputs: Inputs, nodes: list, named: dict) -> object:
    """A call whose result is connected to the inputs that want gradients."""
    box: dict = {}
    connected = _Call.apply((remote, inputs, nodes, named, box), *inputs.tensors)
    swap = {id(plain): graph for plain, graph in zip(box["flat"], connected, strict=True)}
    return _exchanged(box["result"], swap)


def _exchanged(value: object, swap: dict[int, torch.Tensor]) -> object:
    if isinstance(value, torch.Tensor):
        return swap.get(id(value), value)
    if isinstance(value, (list, tuple)):
        return type(value)(_exchanged(item, swap) for item in value)
    if isinstance(value, dict):
        return {key: _exchanged(item, swap) for key, item in value.items()}
    return value


def error_of(data: object) -> Exception:
    """The exception that another process described: of the nearest class that Python itself has."""
    data = data if isinstance(data, dict) else {}
    types = data.get("types")
    names = [name for name in types if isinstance(name, str)] if isinstance(types, list) else []
    message = str(data.get("message", ""))[:2000]
    error: Exception = RuntimeError(message)
    for name in names:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                error = kind(message)
            except TypeError:  # some want more than a message
                error = RuntimeError(message)
            break
    error.told = str(data.get("told", "The call failed, and did not say how."))[:2000]
    error.by_torch = data.get("by_torch") is True
    return error


def counts_from(data: object, probes: int) -> Costs | None:
    """Counted costs as another process reports them, without the judge's own probes; None if they miss."""
    if not isinstance(data, dict):
        return None
    counters = []
    for name in ("operations", "views"):
        entries = data.get(name)
        if not isinstance(entries, dict) or not all(
            isinstance(key, str) and type(number) is int and number >= 0 for key, number in entries.items()
        ):
            return None
        counters.append(Counter({key[:100]: number for key, number in entries.items()}))
    numbers = [data.get(name) for name in _NUMBERS]
    if not all(type(number) is int and 0 <= number < 1 << 60 for number in numbers):
        return None
    operations, views = counters
    if operations.pop(_PROBE, 0) != probes:
        return None
    cost = dict(zip(_NUMBERS, numbers, strict=True))
    cost["bytes"] -= 4 * probes
    return Costs(operations, views, **cost)


def class_named(name: object) -> type[RemoteObject]:
    """A stand-in class with the name of the student's class, for messages."""
    name = re.sub(r"\W", "_", str(name))[:80] or "object"
    return type(name, (RemoteObject,), {})


class Names(dict):
    """The names of the judge's notebook; a name that only the student defined becomes a stand-in."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(__name__="__main__", __builtins__=builtins)
        self._judge = judge

    def __missing__(self, name: str) -> object:
        if name.startswith("__") or hasattr(builtins, name):
            raise KeyError(name)
        try:
            found = self._judge.look({"name": name})
        except AttributeError:
            raise KeyError(name) from None
        if isinstance(found, Remote):
            self[name] = found
        return found
