"""Every value that comes from a process that runs an answer is read here, and nowhere else.

Such a process belongs to whoever owns the code in it, so what it sends is data from somebody else.
``parse`` (``messages``) has made messages of its bytes, by their schema; here every size, index and name in
them is checked before it is used. Whatever does not fit raises ``Malformed`` with one sentence; whoever
asked ends that process then.
"""

from __future__ import annotations

import builtins
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from ..judging.answer import FailedElsewhere
from ..measuring.costs import Costs
from .cells import Outputs
from .channel import MOST_BYTES, Malformed
from .encode import Storage, memory_order
from .messages import (
    MOST_NODES,
    ArrayNode,
    BytesNode,
    ComplexNode,
    CountedCosts,
    DictNode,
    Display,
    IntegerNode,
    ObjectNode,
    Place,
    Raised,
    ScalarNode,
    SequenceNode,
    SettingNode,
    Shown,
    StackNode,
    Stream,
    TensorNode,
    Value,
)

if TYPE_CHECKING:
    pass

MOST_DEPTH = 50
PROBE = "aten.special_bessel_j0"  # an operation of the judge's own, counted beside a call's
COLLECTIONS: dict[str, type] = {"list": list, "tuple": tuple, "set": set}

M = TypeVar("M")

_BAD_VALUES = (
    TypeError,
    ValueError,
    KeyError,
    IndexError,
    RuntimeError,
    AttributeError,
    OverflowError,
    MemoryError,
)


class Reader:
    """Reads the values of one frame: at most ``MOST_NODES`` of them, ``MOST_DEPTH`` deep, ``MOST_BYTES``
    large.

    ``storages`` are the judge's inputs, in whose memory a result may lie. ``make_object`` gives what stands
    for an object that stays in the other process. ``differentiable`` are the tensors that are part of a
    graph, by number.
    """

    def __init__(
        self, payload: bytearray, storages: Sequence[Storage], make_object: Callable[[ObjectNode], object]
    ) -> None:
        self._payload, self._storages, self._make_object = payload, storages, make_object
        self._nodes = self._bytes = 0
        self.differentiable: dict[int, torch.Tensor] = {}

    def value(self, node: Value) -> Any:
        """The value of a node. Raises Malformed."""
        try:
            return self._value(node, 0)
        except _BAD_VALUES as error:
            raise Malformed(f"a value that cannot be read ({type(error).__name__})") from error

    def _value(self, node: Value, depth: int) -> Any:
        self._nodes += 1
        if self._nodes > MOST_NODES or depth > MOST_DEPTH:
            raise Malformed("a result with too many or too deeply nested parts")
        match node:
            case TensorNode():
                return self._tensor(node)
            case StackNode():
                return self._stack(node)
            case ArrayNode():
                return self._array(node)
            case ScalarNode(value=ArrayNode() as array):
                return self._array(array)[()]
            case SequenceNode():
                return COLLECTIONS[node.kind](self._value(item, depth + 1) for item in node.items)
            case DictNode():
                return {self._value(key, depth + 1): self._value(item, depth + 1) for key, item in node.items}
            case IntegerNode():
                return int(node.digits, 16)
            case BytesNode():
                return node.data
            case ComplexNode():
                return complex(node.real, node.imaginary)
            case SettingNode():
                return setting(node)
            case ObjectNode():
                return self._make_object(node)
            case None | bool() | int() | float() | str():
                return node
        raise Malformed("a value of a kind that no result has")

    def _array(self, node: ArrayNode) -> np.ndarray:
        dtype = np.dtype(node.dtype)
        if dtype.kind not in "biufc":
            raise Malformed("an array of an unknown type")
        data = self._data(node.buffer, math.prod(node.shape) * dtype.itemsize)
        return np.frombuffer(data, dtype).reshape(node.shape)

    def _stack(self, node: StackNode) -> list[torch.Tensor]:
        dtype = _dtype(node.dtype)
        self._nodes += len(node.shapes)
        sizes = [math.prod(shape) for shape in node.shapes]
        data = self._data(node.buffer, sum(sizes) * dtype.itemsize)
        flat = torch.frombuffer(data, dtype=dtype) if len(data) else torch.empty(0, dtype=dtype)
        return [part.view(shape) for part, shape in zip(flat.split(sizes), node.shapes, strict=True)]

    def _tensor(self, node: TensorNode) -> torch.Tensor:
        dtype, shape, strides = _dtype(node.dtype), node.shape, node.strides
        if len(shape) != len(strides):
            raise Malformed("a tensor whose strides do not fit its shape")
        if node.device == "meta":
            made = torch.empty_strided(shape, strides, dtype=dtype, device="meta")
        elif node.device != "cpu":
            raise Malformed(f"a tensor on the device {node.device!r:.20}")
        elif node.storage is not None:
            base = self._storages[node.storage]
            if node.offset % dtype.itemsize:
                raise Malformed("a tensor that starts within a number")
            flat = torch.from_numpy(base.memory) if base.tensor is None else base.tensor
            # torch checks that shape and strides stay within this memory
            made = torch.empty(0, dtype=dtype).set_(
                flat.untyped_storage(), node.offset // dtype.itemsize, shape, strides
            )
        else:
            made = self._own_memory(node.buffer, dtype, shape, strides)
        if node.grad is not None:
            self.differentiable[node.grad] = made
        return made

    def _own_memory(
        self, buffer: Place | None, dtype: torch.dtype, shape: list[int], strides: list[int]
    ) -> torch.Tensor:
        if 0 in shape:
            return torch.empty_strided(shape, strides, dtype=dtype)
        if buffer is None:
            raise Malformed("a tensor without values")
        sent = [1 if stride == 0 else size for size, stride in zip(shape, strides, strict=True)]
        data = self._data(buffer, math.prod(sent) * dtype.itemsize)
        flat = torch.frombuffer(data, dtype=torch.uint8) if len(data) else torch.empty(0, dtype=torch.uint8)
        order = memory_order(strides)
        values = flat.clone().view(dtype).view([sent[dim] for dim in order])
        values = values.permute([order.index(dim) for dim in range(len(order))])
        if values.stride() == tuple(strides):
            return values
        extent = sum((size - 1) * stride for size, stride in zip(sent, strides, strict=True)) + 1
        if extent * dtype.itemsize > MOST_BYTES:
            raise Malformed("a tensor that spreads over too much memory")
        made = torch.empty(extent, dtype=dtype).as_strided(sent, strides)
        return made.copy_(values).as_strided(shape, strides)

    def _data(self, place: Place, size: int) -> memoryview:
        start, length = place
        if length != size or not 0 <= start <= start + length <= len(self._payload):
            raise Malformed("a tensor whose size does not fit its shape")
        self._bytes += size
        if self._bytes > MOST_BYTES:
            raise Malformed("a result that is too large")
        return memoryview(self._payload)[start : start + length]


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise Malformed("a tensor of an unknown dtype")
    return dtype


def setting(node: SettingNode) -> torch.dtype | torch.device | torch.memory_format:
    """A torch dtype, device or memory format. Raises Malformed, or what torch raises for a device."""
    if node.kind == "device":
        return torch.device(node.name)
    value = getattr(torch, node.name, None)
    if not isinstance(value, torch.dtype if node.kind == "dtype" else torch.memory_format):
        raise Malformed(f"a {node.kind} that torch does not have")
    return value


def outputs(shown: Sequence[Shown]) -> Outputs:
    """What a cell showed, in nbformat's form, and no more than a page can hold."""
    found = Outputs()
    for item in shown:
        match item:
            case Stream():
                found.stream(item.name, item.text)
            case Display():
                found.bundle(item.kind, dict(item.data))
            case _:
                found.error(item.name, item.text, item.traceback)
    return found


def error(raised: Raised) -> Exception:
    """The exception that another process described: of the nearest class that Python itself has.

    Its cause says what the student should read.
    """
    found: Exception = RuntimeError(raised.text)
    for name in raised.types:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                found = kind(raised.text)
            except TypeError:  # some want more than a message
                found = RuntimeError(raised.text)
            break
    found.__cause__ = FailedElsewhere(raised.told, raised.by_torch)
    return found


def costs_without_probes(counted: CountedCosts | None, probes: int) -> Costs | None:
    """Counted costs without the judge's ``probes``; None where these are not all there."""
    if counted is None:
        return None
    operations = Counter(counted.operations)
    if operations.pop(PROBE, 0) != probes:
        return None
    return Costs(
        operations,
        Counter(counted.views),
        counted.bytes - 4 * probes,
        counted.peak_bytes,
        counted.copies,
        counted.transfers,
        counted.syncs,
    )


def class_name(name: str) -> str:
    """A name that a class may have, for messages."""
    return re.sub(r"\W", "_", name)[:80] or "object"
