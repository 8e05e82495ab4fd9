"""What a test cell has in place of a student's functions, classes and objects (see ``judging.calls``)."""

import builtins
from collections.abc import Collection
from functools import partial, partialmethod
from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch

from ...judging.calls import AnswerError
from ...judging.values import change_tensors, tensors
from ...measuring.costs import counted_now
from ..answers.answer_link import AnswerLink
from ..racing.timed_race import TimedRace
from ..wire import decode, messages
from ..wire.changed_inputs import take_over
from ..wire.channel import Frame
from ..wire.encode import Inputs, memory_order


class Proxy:
    """Something callable in the answer's process: a function, a class, an object or one of its methods.

    ``timed_race`` has the races of its submission.
    """

    def __init__(self, link: AnswerLink, timed_race: TimedRace, target: messages.Target) -> None:
        self._link, self._timed_race, self._target = link, timed_race, target
        self.duel = partial(timed_race.duel, target)  # as the protocol says

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Send the inputs, take over what the call changed in them, and read the result."""
        link, cost, inputs = self._link, counted_now(), Inputs(number_of)
        probe = None if cost is None else link.random.randrange(len(decode.PROBES))
        with no_dispatch(), torch._C.DisableTorchFunction():
            nodes = [inputs.node(value) for value in args]
            named = {name: inputs.node(value) for name, value in kwargs.items()}
            copies = cost is not None and cost.copies_matter
            request = messages.Call(self._target, nodes, named, inputs.places(), probe, copies)
            with inputs.shared() as shared:
                files = [shared.file] if inputs.storages else []
                memory = link.watch_memory(cost, inputs.size) if cost and cost.memory_matters else None
                reply, frame = link.ask(request, messages.Returned | messages.Raised, files=files)
                inputs.take_changes(shared)
                if cost is not None and cost.sharing_matters and len(frame.payload):
                    cost.shares |= link.result_follows(shared.bytes, frame)
            link.pass_on(reply.said)
            if isinstance(reply, messages.Raised):
                raise decode.error(reply)
            result, reader = link.read(reply.result, frame, self._object, inputs.storages)
            if reply.changed is not None:
                self._take_over([*args, *kwargs.values()], reply.changed, frame, inputs)
            if reader.aliases and self._target.name:
                link.process.shares.add(self._target.name)
            if inputs.tensors and torch.is_grad_enabled():
                result = _with_graph(link, reply.graph, inputs.tensors, result, reader.differentiable)
        if cost is not None and probe is not None:
            counted = link.costs(reply.costs, probe)
            if memory is not None:
                # To hand over a result with gaps takes a copy of it.
                ordered = [one.permute(memory_order(one.stride())) for one in tensors(result)]
                copied = sum(tensor.nbytes for tensor in ordered if not tensor.is_contiguous())
                memory.add_to(counted, copied)
            cost.add(counted)
        return result

    def _take_over(
        self, given: list[Any], changed: messages.ChangedInputs, frame: Frame, inputs: Inputs
    ) -> None:
        """What the call made of its inputs, besides their values."""
        values = messages.CollectionNode("list", [*changed.given, *changed.gradients])
        found, _ = self._link.read(values, frame, self._object, inputs.storages)
        now, gradients = found[: len(changed.given)], found[len(changed.given) :]
        if len(now) != len(given) or not len(tensors(now)) == len(changed.requiring) == len(gradients):
            raise AnswerError("error", "what became of the inputs cannot be read.")
        take_over(given, now, zip(changed.requiring, gradients, strict=True))

    def _object(self, node: messages.ObjectNode) -> "ProxyObject":
        """What stands for an object that stays in the answer's process; its class has the same name."""
        kind: type[ProxyObject] = type(decode.class_name(node.type), (ProxyObject,), {})
        return kind(self._link, self._timed_race, messages.Target(of=node.number))


class ProxyObject(Proxy):
    """An object that an answer made. Its attributes are asked for when they are used, its methods once."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = look_up(self._link, self._timed_race, messages.Target(name, self._target.of))
        if isinstance(found, Proxy) and not isinstance(found, ProxyObject):
            self.__dict__[name] = found  # calls go by the name, so whatever bears it then is called
        return found

    def _method(self, name: str, *args: object) -> Any:
        return Proxy(self._link, self._timed_race, messages.Target(name, self._target.of))(*args)

    # Of a special name, the other process calls what Python calls for it (see ``answer_process.PROTOCOLS``).

    __len__ = partialmethod(_method, "__len__")
    __bool__ = partialmethod(_method, "__bool__")
    __contains__ = partialmethod(_method, "__contains__")
    __getitem__ = partialmethod(_method, "__getitem__")
    __setitem__ = partialmethod(_method, "__setitem__")
    __iter__ = partialmethod(_method, "__iter__")
    __next__ = partialmethod(_method, "__next__")


def number_of(value: object) -> int | None:
    """The number by which the answer's process knows an object."""
    return value._target.of if isinstance(value, ProxyObject) else None


def look_up(link: AnswerLink, timed_race: TimedRace, target: messages.Target) -> Any:
    """What a name or an attribute stands for in the answer's process. Raises AttributeError."""
    reply, frame = link.ask(messages.Look(target), messages.Found | messages.Raised)
    if isinstance(reply, messages.Raised):
        raise AttributeError(f"there is no {target.name!r}")
    proxy = Proxy(link, timed_race, target)
    if isinstance(reply.value, messages.ObjectNode) and reply.value.number is None:
        return proxy
    return link.read(reply.value, frame, proxy._object)[0]


class Names(dict[str, Any]):
    """The names of the judge's notebook. Of those that it lacks, the ``released`` ones are looked up in the
    answer's process; a function becomes a proxy.
    """

    def __init__(self, link: AnswerLink, timed_race: TimedRace, released: Collection[str]) -> None:
        super().__init__(__name__="__main__", __builtins__=builtins)
        self._link, self._timed_race = link, timed_race
        self._released = {name for name in released if not hasattr(builtins, name)}

    def __missing__(self, name: str) -> Any:
        if name not in self._released:
            raise KeyError(name)
        try:
            found = look_up(self._link, self._timed_race, messages.Target(name))
        except AttributeError:
            raise KeyError(name) from None
        if isinstance(found, Proxy):
            self[name] = found
        return found


class _Step(torch.autograd.Function):
    """One call in the answer's process as a node in the judge's graph."""

    @staticmethod
    def forward(
        ctx: Any, call: tuple[AnswerLink, int | None, list[torch.Tensor]], *tensors: torch.Tensor
    ) -> Any:
        ctx.link, ctx.graph, results = call
        ctx.connection, ctx.number = ctx.link.connection, len(tensors)
        ctx.shapes = [tensor.shape for tensor in tensors]
        given = {tensor.untyped_storage().data_ptr() for tensor in tensors}
        # autograd must not mistake a result that lies in an input for the input itself
        return tuple(t.clone() if t.untyped_storage().data_ptr() in given else t.view_as(t) for t in results)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        if ctx.graph is None or ctx.link.connection is not ctx.connection:
            return (None,) * (ctx.number + 1)
        inputs = Inputs(number_of)
        with no_dispatch():
            nodes = [inputs.node(None if g is None else g.detach()) for g in gradients]
        request = messages.Backward(ctx.graph, nodes, inputs.places())
        with inputs.shared() as shared:
            reply, frame = ctx.link.ask(request, messages.Found | messages.Raised, files=[shared.file])
        if isinstance(reply, messages.Raised):
            raise decode.error(reply)
        found, _ = ctx.link.read(reply.value, frame, lambda node: None)
        if not isinstance(found, list) or len(found) != ctx.number:
            raise RuntimeError("the backward pass of the answer gave no gradients")
        # autograd would sum up what is larger, however much that is, and nothing stops it there
        if any(one is not None and one.shape != shape for one, shape in zip(found, ctx.shapes, strict=True)):
            raise RuntimeError("the backward pass of the answer gave gradients of other shapes")
        return (None, *found)


def _with_graph(
    link: AnswerLink,
    graph: int | None,
    inputs: list[torch.Tensor],
    result: Any,
    differentiable: dict[int, torch.Tensor],
) -> Any:
    """The result connected to the inputs that want gradients."""
    results = [differentiable[number] for number in sorted(differentiable)]
    connected = _Step.apply((link, graph, results), *inputs)
    steps = {id(plain): step for plain, step in zip(results, connected, strict=True)}
    return change_tensors(result, lambda tensor: steps.get(id(tensor), tensor))
