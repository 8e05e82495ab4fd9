"""Every value that comes from a process that runs an answer is read here, and nowhere else.

Such a process belongs to whoever owns the code in it, so what it sends is data from somebody else.
``parse`` (``messages``) has made messages of its bytes, by their schema; here every size, index and name in
them is checked before it is used. Whatever does not fit raises ``Malformed`` with one sentence; whoever
asked ends that process then.
"""

import builtins
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from msgspec import structs

from ...judging.calls import FailedElsewhere
from ...measuring.costs import Costs
from . import messages
from .channel import MOST_BYTES, Malformed
from .encode import Storage, memory_order
from .outputs import Outputs
from .plain import from_node, named

MOST_DEPTH = 50
MOST_KEYS = 20_000  # of all dicts and sets in a message: keys can be made to collide
MOST_OBJECTS = 20_000
MOST_DIGITS = 100_000
# By the kind of a collection: of how many items one is a key.
KEYS = {"set": 1, "frozenset": 1, "dict": 2}
# Operations of the judge's own, one of which is counted beside a call's: nobody else has a use for them.
PROBES = [
    f"special_{name}"
    for name in (
        *("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "spherical_bessel_j0"),
        *(f"modified_bessel_{name}" for name in ("i0", "i1", "k0", "k1")),
        *(f"scaled_modified_bessel_{name}" for name in ("k0", "k1")),
        *(f"{kind}chebyshev_polynomial_{name}" for kind in ("", "shifted_") for name in "tuvw"),
        *("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"),
    )
]

_ALL_PROBES = {f"aten.{name}" for name in PROBES}
_NUMPY_DTYPE = re.compile(r"[<>|=]?[biufc]\d{1,2}")


class Reader:
    """Reads the values of one frame: at most ``MOST_NODES`` of them, ``MOST_DEPTH`` deep, ``MOST_BYTES``
    large.

    ``memory`` holds the values of tensors and arrays. ``storages`` are the judge's inputs, in whose memory a
    result may lie. ``make_object`` gives what stands for an object that stays in the other process. Tensors
    are on ``device`` there, and on the CPU here.
    ``differentiable`` are the tensors that are part of a graph, by number; ``bytes`` how many were read, and
    ``aliases`` the numbers of the inputs' storages that a result lies in.
    """

    def __init__(
        self,
        memory: "bytearray | ProcessMemory",
        storages: Sequence[Storage],
        make_object: Callable[[messages.ObjectNode], object],
        device: str = "cpu",
    ) -> None:
        self._memory, self._storages, self._make_object = memory, storages, make_object
        self._device = device
        self._nodes = self.bytes = self._keys = self._objects = self._spread = 0
        self.aliases: set[int] = set()
        self.differentiable: dict[int, torch.Tensor] = {}

    def value(self, node: messages.Value) -> Any:
        """The value of a node. Raises Malformed."""
        try:
            return self._value(node, 0)
        except Malformed:
            raise
        except Exception as error:  # numpy and torch raise many kinds
            raise Malformed(f"a value that cannot be read ({type(error).__name__})") from error

    def _value(self, node: messages.Value, depth: int) -> Any:
        self._nodes += 1
        if self._nodes > messages.MOST_NODES or depth > MOST_DEPTH:
            raise Malformed("a result with too many or too deeply nested parts")
        match node:
            case messages.TensorNode():
                return self._tensor(node)
            case messages.TensorsNode():
                return (list if node.kind == "list" else tuple)(self._tensors(node))
            case messages.ArrayNode():
                return self._array(node)
            case messages.CollectionNode():
                if node.kind in KEYS:
                    self._keys += len(node.items) // KEYS[node.kind]
                    if self._keys > MOST_KEYS:
                        raise Malformed(f"a result with more than {MOST_KEYS} keys")
                return from_node(node, lambda item: self._value(item, depth + 1))
            case messages.PlainNode():
                if len(node.data) > MOST_DIGITS and node.kind != "bytes":
                    raise Malformed("a number or a name that is too long")
                return from_node(node, self.value)
            case messages.ObjectNode():
                self._objects += 1
                if self._objects > MOST_OBJECTS:
                    raise Malformed(f"a result with more than {MOST_OBJECTS} objects")
                return self._make_object(node)
            case None | bool() | int() | float() | str():
                return node
        raise Malformed("a value of a kind that no result has")

    def _array(self, node: messages.ArrayNode) -> Any:
        if not _NUMPY_DTYPE.fullmatch(node.dtype):
            raise Malformed("an array of an unknown type")
        if node.buffer is None:
            raise Malformed("an array without values")
        dtype = np.dtype(node.dtype)
        data = self._data(node.buffer, math.prod(node.shape) * dtype.itemsize)
        made = np.frombuffer(data, dtype).reshape(node.shape)
        return made[()] if node.scalar else made

    def _tensors(self, node: messages.TensorsNode) -> Iterator[torch.Tensor]:
        dtype = named(torch.dtype, node.dtype)
        if len(node.shapes) != len(node.starts):
            raise Malformed("tensors without an address")
        self._nodes += len(node.shapes)
        if self._nodes > messages.MOST_NODES:
            raise Malformed("a result with too many parts")
        for shape, start in zip(node.shapes, node.starts, strict=True):
            size = math.prod(shape) * dtype.itemsize
            data = self._data((start, size), size)
            yield (torch.frombuffer(data, dtype=dtype) if size else torch.empty(0, dtype=dtype)).view(shape)

    def _tensor(self, node: messages.TensorNode) -> torch.Tensor:
        dtype, shape, strides = named(torch.dtype, node.dtype), node.shape, node.strides
        if len(shape) != len(strides):
            raise Malformed("a tensor whose strides do not fit its shape")
        if node.device == "meta":
            made = torch.empty_strided(shape, strides, dtype=dtype, device="meta")
        elif node.device != self._device:
            raise Malformed(f"a tensor on the device {node.device!r:.20}")
        elif node.storage is not None:
            base = self._storages[node.storage]
            self.aliases.add(node.storage)
            if node.offset % dtype.itemsize:
                raise Malformed("a tensor that starts within a number")
            memory = base.tensor.untyped_storage() if base.owner is None else base.owner
            last = node.offset + dtype.itemsize * sum(
                (n - 1) * step for n, step in zip(shape, strides, strict=True)
            )
            if all(shape) and not 0 <= last <= memory.nbytes() - dtype.itemsize:
                # torch would make this memory larger, and what it was before is known by its address.
                raise Malformed("a tensor that reaches beyond the memory that it lies in")
            made = torch.empty(0, dtype=dtype).set_(memory, node.offset // dtype.itemsize, shape, strides)
        else:
            made = self._own_memory(node.buffer, dtype, shape, strides)
        if node.grad is not None:
            self.differentiable[node.grad] = made
        return made

    def _own_memory(
        self, buffer: messages.Place | None, dtype: torch.dtype, shape: list[int], strides: list[int]
    ) -> torch.Tensor:
        if 0 in shape:
            return torch.empty_strided(shape, strides, dtype=dtype)
        if buffer is None:
            raise Malformed("a tensor without values")
        sent = [1 if stride == 0 else size for size, stride in zip(shape, strides, strict=True)]
        data = self._data(buffer, math.prod(sent) * dtype.itemsize)
        order = memory_order(strides)
        values = torch.frombuffer(data, dtype=dtype).view([sent[dim] for dim in order])
        values = values.permute([order.index(dim) for dim in range(len(order))])
        if values.stride() == tuple(strides):
            return values
        extent = sum((size - 1) * stride for size, stride in zip(sent, strides, strict=True)) + 1
        self._spread += extent * dtype.itemsize
        if self._spread > MOST_BYTES:
            raise Malformed("tensors that spread over too much memory")
        made = torch.empty(extent, dtype=dtype).as_strided(sent, strides)
        return made.copy_(values).as_strided(shape, strides)

    def _data(self, place: messages.Place, size: int) -> memoryview:
        start, length = place
        self.bytes += size
        if length != size:
            raise Malformed("a tensor whose size does not fit its shape")
        if self.bytes > MOST_BYTES:
            raise Malformed("a result that is too large")
        data = memoryview(self._memory[start : start + length])
        if len(data) != size:
            raise Malformed("a tensor whose values are not all there")
        return data


class ProcessMemory:
    """The memory of another process, by address. Raises OSError where it cannot be opened."""

    def __init__(self, pid: int) -> None:
        self._file = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)

    def __getitem__(self, part: slice) -> bytearray:
        """The bytes from one address to another. Raises Malformed where there is no such memory."""
        found = bytearray(part.stop - part.start)
        try:
            number = os.preadv(self._file, [found], part.start)
        except OSError:
            raise Malformed("a tensor at an address where nothing is") from None
        return found if number == len(found) else found[:number]

    def close(self) -> None:
        os.close(self._file)


def outputs(shown: Sequence[messages.Shown]) -> Outputs:
    """What a cell showed, in nbformat's form, and no more than a page can hold."""
    found = Outputs()
    for item in shown:
        match item:
            case messages.Stream():
                found.stream(item.name, item.text)
            case messages.Display():
                found.bundle(item.kind, {str(name): value for name, value in item.data.items()})
            case _:
                found.error(item.name, item.text, item.traceback)
    return found


def error(raised: messages.Raised) -> Exception:
    """The exception that another process described: of the nearest class that Python itself has.

    Its cause says what the student should read.
    """
    found: Exception = RuntimeError(raised.text)
    for name in raised.types:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            with suppress(TypeError):  # some want more than a message
                found = kind(raised.text)
            break
    found.__cause__ = FailedElsewhere(raised.told, raised.by_torch)
    return found


def costs_without_probe(counted: messages.CountedCosts | None, probe: int) -> Costs | None:
    """Counted costs without the judge's probe of this number; None where it is not the only one there."""
    if counted is None:
        return None
    operations = Counter(counted.operations)
    if operations.pop(f"aten.{PROBES[probe]}", 0) != 1 or not operations.keys().isdisjoint(_ALL_PROBES):
        return None
    counts = structs.asdict(counted) | {"operations": operations, "views": Counter(counted.views)}
    return Costs(**counts | {"bytes": counted.bytes - 4})


def opaque(node: messages.ObjectNode) -> object:
    """What stands for a result that is no plain value."""
    return type(class_name(node.type), (), {})()


def class_name(name: str) -> str:
    """A name that a class may have, for messages."""
    return re.sub(r"\W", "_", name)[:80] or "object"
