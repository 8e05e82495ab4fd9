"""Values on their way to another process: ``messages`` nodes and raw bytes. Never pickled."""

import fcntl
import mmap
import os
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import torch
from numpy.lib import array_utils
from torch.utils._mode_utils import no_dispatch

from . import messages
from .plain import to_node, torch_name

FEW = 4  # tensors


@dataclass
class Storage:
    """A piece of memory of the judge's inputs, and where it lies in the shared memory."""

    memory: np.ndarray  # uint8, the judge's own memory
    place: slice
    owner: torch.UntypedStorage | None  # of the memory, where it belongs to a tensor
    writeable: bool

    @property
    def tensor(self) -> torch.Tensor:
        """The memory as a tensor (uint8)."""
        if self.owner is None:
            return torch.from_numpy(self.memory)
        return torch.empty(0, dtype=torch.uint8).set_(self.owner)


class SharedMemory:
    """``size`` bytes that another process can map, too: ``file`` is passed to it.

    Sealed, so that nobody can shrink it under the judge's hands. ``bytes`` are its contents.
    """

    def __init__(self, size: int) -> None:
        self.size = max(size, 1)
        self.file = os.memfd_create("inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.file, self.size)
        fcntl.fcntl(self.file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self.bytes = np.frombuffer(mmap.mmap(self.file, self.size), dtype=np.uint8)

    def close(self) -> None:
        """Give the file back. The memory stays as long as somebody uses it."""
        os.close(self.file)


class Inputs:
    """Arguments made ready for a process that runs an answer: nodes, and the storages that they need.

    ``tensors`` are those that want gradients, in the order of their nodes. ``number_of`` gives the number by
    which the other process knows an object of its own, or None. ``ready``: tensors and arrays are told before
    the call, so the nodes only refer to those collected here.
    """

    def __init__(
        self,
        number_of: Callable[[object], int | None] = lambda value: None,
        ready: list[messages.Value] | None = None,
    ) -> None:
        self._ready = ready
        self.storages: list[Storage] = []
        self.size = 0
        self.tensors: list[torch.Tensor] = []
        self._number_of = number_of
        self._known: dict[tuple[int, int], int] = {}

    def node(self, value: Any) -> messages.Value:
        """The node of a value. Raises TypeError for what cannot travel."""
        if isinstance(value, torch.Tensor):
            return self._made_ready(self._tensor(value))
        if isinstance(value, np.ndarray):
            return self._made_ready(self._array(value))
        if isinstance(value, np.generic):
            return self._array(np.asarray(value), scalar=True)
        if (number := self._number_of(value)) is not None:
            return messages.ObjectNode(number, type(value).__name__[:80])
        return to_node(value, self.node)

    def _made_ready(self, node: messages.TensorNode | messages.ArrayNode) -> messages.Value:
        if self._ready is None:
            return node
        self._ready.append(node)
        return messages.ReadyNode(len(self._ready) - 1)

    def _array(self, value: np.ndarray, scalar: bool = False) -> messages.ArrayNode:
        low, high = array_utils.byte_bounds(value)
        start = value.__array_interface__["data"][0]
        return messages.ArrayNode(
            value.dtype.str,
            list(value.shape),
            scalar=scalar,
            strides=list(value.strides),
            storage=self._storage(low, high - low, value, writeable=value.flags.writeable),
            offset=start - low,
            writeable=bool(value.flags.writeable),
        )

    def _tensor(self, tensor: torch.Tensor) -> messages.TensorNode:
        grad = storage = None
        if tensor.requires_grad:
            grad = len(self.tensors)
            self.tensors.append(tensor)
        if tensor.device.type == "cpu":
            memory = tensor.untyped_storage()
            storage = self._storage(memory.data_ptr(), memory.nbytes(), memory)
        offset = 0 if storage is None else int(tensor.storage_offset())
        return messages.TensorNode(*_about(tensor), grad, storage, offset)

    def _storage(
        self, start: int, size: int, keeper: np.ndarray | torch.UntypedStorage, writeable: bool = True
    ) -> int:
        if (start, size) not in self._known:
            self._known[start, size] = len(self.storages)
            owner = keeper if isinstance(keeper, torch.UntypedStorage) else None
            place = slice(self.size, self.size + size)
            self.storages.append(Storage(memory_at(start, size, keeper), place, owner, writeable))
            self.size += -(-max(size, 1) // 64) * 64
        return self._known[start, size]

    def places(self) -> list[tuple[int, int]]:
        """Offset and size of each storage in the shared memory, for the other side."""
        return [(storage.place.start, len(storage.memory)) for storage in self.storages]

    @contextmanager
    def shared(self) -> Iterator[SharedMemory]:
        """Memory for another process, with all storages in it."""
        with closing(SharedMemory(self.size)) as shared:
            self.fill(shared)
            yield shared

    def fill(self, shared: SharedMemory) -> None:
        """Copy all storages into the shared memory."""
        for storage in self.storages:
            shared.bytes[storage.place] = storage.memory

    def changed(self, shared: SharedMemory) -> bool:
        """Whether the other side wrote into the shared memory."""
        return not all(same_bytes(shared.bytes[one.place], one.memory) for one in self.storages)

    def take_changes(self, shared: SharedMemory) -> None:
        """Bring what the other side changed in the shared memory into the judge's own inputs."""
        for storage in self.storages:
            seen = shared.bytes[storage.place]
            if storage.writeable and not same_bytes(seen, storage.memory):
                storage.memory[:] = seen


def memory_at(start: int, size: int, keeper: object) -> np.ndarray:
    """So many bytes of this process's memory (uint8), which is there as long as its ``keeper``.

    Here as elsewhere on the way of a call, few operations of torch: after each switch of processes their code
    is in no cache, and one takes tens of microseconds.
    """
    if not size:
        return np.empty(0, np.uint8)
    about = {"data": (start, False), "shape": (size,), "typestr": "|u1", "version": 3}
    return np.asarray(SimpleNamespace(__array_interface__=about, keeper=keeper))


def same_bytes(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two pieces of memory (uint8, equally long) hold the same."""
    if len(one) < 4096:
        return one.tobytes() == other.tobytes()
    whole = len(one) // 8 * 8  # in words: four times as fast
    words = np.array_equal(one[:whole].view(np.uint64), other[:whole].view(np.uint64))
    return words and np.array_equal(one[whole:], other[whole:])


class Results:
    """A result made ready for the way back, in the process that runs an answer.

    ``storages`` are the judge's inputs as uint8 tensors: a result in their memory is sent as a reference.
    ``keep`` takes what cannot travel, and gives the number that stands for it. ``differentiable`` are the
    tensors that are part of a graph, in the order of their nodes.
    """

    def __init__(self, storages: list[torch.Tensor], keep: Callable[[object], int]) -> None:
        self.buffers: list[memoryview] = []
        self.size = 0
        self.differentiable: list[torch.Tensor] = []
        self._keep = keep
        # They lie one after the other in the same memory; those without a byte are nowhere.
        self._inputs = [
            (base.data_ptr(), base.numel(), number) for number, base in enumerate(storages) if base.numel()
        ]

    def node(self, value: Any) -> messages.Value:
        """The node of a result; what is no plain value stays here and gets a number."""
        if type(value) is float or type(value) is bool or value is None:
            return value  # soon: there can be thousands of them, and a race waits
        if isinstance(value, torch.Tensor) and value.layout == torch.strided:
            if type(value) not in (torch.Tensor, torch.nn.Parameter):  # torchvision has some, or the student
                with torch._C.DisableTorchFunctionSubclass():  # but what it does for that is counted
                    value = torch.ops.aten.alias(value)
            return self._tensor(value)
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            return self._array(np.asarray(value))
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            return self._array(np.asarray(value), scalar=True)
        if type(value) is str:
            return value.encode("utf-8", "replace").decode()  # a lone surrogate is no text that can be sent
        if isinstance(value, (list, tuple, set, frozenset, dict)) or type(value) in _SIMPLE or value is None:
            return to_node(value, self.node)
        for kind, plain in _PLAIN.items():
            if isinstance(value, kind):  # an Enum, or a class of the student's own
                return self.node(plain(value))
        return messages.ObjectNode(self._keep(value), type(value).__name__[:80])

    def _array(self, value: np.ndarray, scalar: bool = False) -> messages.ArrayNode:
        data = np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
        return messages.ArrayNode(value.dtype.str, list(value.shape), self._buffer(data), scalar)

    def _tensor(self, tensor: torch.Tensor) -> messages.TensorNode:
        grad = storage = buffer = None
        offset = 0
        if tensor.requires_grad:
            grad = len(self.differentiable)
            self.differentiable.append(tensor)
        if tensor.device.type != "meta":
            data = tensor
            if data.is_conj() or data.is_neg():
                with no_dispatch():
                    data = data.resolve_conj().resolve_neg()
            if not data.numel():
                buffer = self._buffer(memoryview(b""))
            elif found := self._alias(data.data_ptr()):
                storage, offset = found
            else:
                buffer = self._values(data)
        return messages.TensorNode(*_about(tensor), grad, storage, offset, buffer)

    def _values(self, data: torch.Tensor) -> tuple[int, int]:
        """Where the values of a tensor are. What is done for that is none of the answer's work."""
        if not (data.is_contiguous() and data.is_cpu):
            with no_dispatch():
                data = flat_bytes(data.detach()).cpu()
        return self._buffer(memory_at(data.data_ptr(), data.nbytes, data).data)

    def _alias(self, start: int) -> tuple[int, int] | None:
        """The storage of an input that an address lies in, and how far."""
        before = bisect_right(self._inputs, start, key=itemgetter(0))
        if not before:
            return None
        low, size, number = self._inputs[before - 1]
        return (number, start - low) if start < low + size else None

    def _buffer(self, data: memoryview) -> tuple[int, int]:
        self.buffers.append(data)
        self.size += len(data)
        return self.size - len(data), len(data)


class ResultsInPlace(Results):
    """A result whose values stay in this process's memory, where the judge reads them itself."""

    def node(self, value: Any) -> messages.Value:
        """As above; many tensors of a kind are one node, because a race waits."""
        if type(value) in (list, tuple) and len(value) >= FEW and set(map(type, value)) == {torch.Tensor}:
            kinds = {(t.dtype, t.layout, t.is_cpu, t.requires_grad, t.is_conj(), t.is_neg()) for t in value}
            plain = kinds == {(value[0].dtype, torch.strided, True, False, False, False)}
            if plain and all(t.is_contiguous() for t in value):
                starts = [t.data_ptr() for t in value]
                if not any(self._alias(start) for start in starts):
                    kind: Literal["list", "tuple"] = "list" if type(value) is list else "tuple"
                    shapes = [list(t.shape) for t in value]
                    return messages.TensorsNode(kind, torch_name(value[0].dtype), shapes, starts)
        return super().node(value)

    def _values(self, data: torch.Tensor) -> tuple[int, int]:
        if data.is_contiguous() and data.device.type == "cpu":
            return data.data_ptr(), data.nbytes
        return super()._values(data)

    def _buffer(self, data: memoryview) -> tuple[int, int]:
        self.buffers.append(data)  # kept until it was read
        return np.frombuffer(data, np.uint8).__array_interface__["data"][0], len(data)


_PLAIN: dict[type, Callable[[Any], Any]] = {int: int.__int__, float: float.__float__, str: str.__str__}
_SIMPLE = (bool, int, float, bytes, complex, torch.dtype, torch.device, torch.memory_format)


def flat_bytes(data: torch.Tensor) -> torch.Tensor:
    """The values of a tensor as bytes (uint8, one dimension), from the largest stride to the smallest.

    Of those that a stride of 0 repeats, one.
    """
    strides = list(data.stride())
    for dim, stride in enumerate(strides):
        if stride == 0 and data.shape[dim] > 1:
            data = data.narrow(dim, 0, 1)
    # A single item may have any stride.
    flat = data.permute(memory_order(strides)).contiguous().as_strided((data.numel(),), (1,))
    return flat.view(torch.uint8)


def memory_order(strides: Collection[int]) -> list[int]:
    """The dimensions from the largest stride to the smallest: the order in which values lie in memory."""
    strides = list(strides)
    return sorted(range(len(strides)), key=lambda dim: -strides[dim])


def _about(tensor: torch.Tensor) -> tuple[str, str, list[int], list[int]]:
    return torch_name(tensor.dtype), str(tensor.device), list(tensor.shape), list(tensor.stride())
