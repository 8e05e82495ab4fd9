"""Values on their way between the judge and a process that runs a student's code: never pickled.

What comes from a student's process is data from somebody else: its size is checked before anything is
allocated, and every field before it is used. Inputs travel in a sealed piece of shared memory, so that the
judge sees for itself what a call changed, and that a result lies in the memory of an input.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.lib import array_utils
from torch.utils._python_dispatch import _disable_current_modes

from .channel import MOST_BYTES, Malformed

MOST_NODES = 500_000
MOST_DEPTH = 50

_SEALS = 0x0002 | 0x0004 | 0x0001  # fcntl.h: no shrinking, no growing, no further seals
_ADD_SEALS = 1033


class Arena:
    """Storages in a sealed piece of shared memory: the judge fills it, the student's process maps it.

    Sealed, so that nobody can shrink it under the judge's hands.
    """

    def __init__(self, size: int) -> None:
        self.size = max(size, 1)
        self.file = os.memfd_create("inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.file, self.size)
        fcntl.fcntl(self.file, _ADD_SEALS, _SEALS)
        self.memory = mmap.mmap(self.file, self.size)
        self.bytes = np.frombuffer(self.memory, dtype=np.uint8)

    def close(self) -> None:
        os.close(self.file)


@dataclass
class _Storage:
    """A piece of memory of the judge's inputs, and where it lies in the arena."""

    memory: np.ndarray  # uint8, the judge's own memory
    offset: int
    tensor: torch.Tensor | None  # uint8 over the same memory, where it belongs to a tensor
    writeable: bool


def container_node(value: Collection, node: Callable[[object], object]) -> dict:
    """The JSON node of a container; ``node`` makes those of what is in it."""
    if isinstance(value, dict):
        return {"t": "dict", "v": [[node(key), node(item)] for key, item in value.items()]}
    kind = "list" if isinstance(value, list) else "tuple" if isinstance(value, tuple) else "set"
    return {"t": kind, "v": [node(item) for item in value]}


def setting_node(value: torch.dtype | torch.device | torch.memory_format) -> dict:
    """The JSON node of a dtype, a device or a memory format."""
    kind = {torch.dtype: "dtype", torch.device: "device"}.get(type(value), "memory_format")
    return {"t": kind, "v": str(value).removeprefix("torch.")}


def tensor_node(tensor: torch.Tensor) -> dict:
    """The JSON node of a tensor without its values."""
    return {
        "t": "tensor",
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": str(tensor.device),
        "shape": list(tensor.shape),
        "strides": list(tensor.stride()),
    }


class Inputs:
    """Arguments made ready for a journey: JSON nodes, and the storages that they need."""

    def __init__(self, objects: Callable[[object], int | None] = lambda value: None) -> None:
        self.storages: list[_Storage] = []
        self.size = 0
        self.tensors: list[torch.Tensor] = []  # those that want gradients, in the order of their nodes
        self._objects = objects
        self._known: dict[tuple[int, int], int] = {}

    def node(self, value: object) -> object:
        """The JSON node of a value. Raises TypeError for what cannot travel."""
        with _disable_current_modes(), torch.no_grad():
            return self._node(value)

    def _node(self, value: object) -> object:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, np.ndarray):
            low, high = array_utils.byte_bounds(value)
            start = value.__array_interface__["data"][0]
            storage = self._storage(low, high - low, None, value.flags.writeable)
            return {
                "t": "array",
                "dtype": value.dtype.str,
                "shape": list(value.shape),
                "strides": list(value.strides),
                "storage": storage,
                "offset": start - low,
                "writeable": bool(value.flags.writeable),
            }
        if isinstance(value, np.generic):
            return {"t": "scalar", "v": self._node(np.asarray(value))}
        if isinstance(value, (list, tuple, set, frozenset, dict)):
            return container_node(value, self._node)
        if isinstance(value, (bytes, bytearray)):
            return {"t": "bytes", "v": value.hex()}
        if isinstance(value, complex):
            return {"t": "complex", "v": [value.real, value.imag]}
        if isinstance(value, (torch.dtype, torch.device, torch.memory_format)):
            return setting_node(value)
        if (handle := self._objects(value)) is not None:
            return {"t": "object", "v": handle}
        raise TypeError(f"a value of type {type(value).__name__} cannot be sent to the answer's process.")

    def _tensor(self, tensor: torch.Tensor) -> dict:
        node = tensor_node(tensor)
        if tensor.requires_grad:
            node["grad"] = len(self.tensors)
            self.tensors.append(tensor)
        if tensor.device.type == "cpu":
            storage = tensor.untyped_storage()
            flat = torch.empty(0, dtype=torch.uint8).set_(storage)
            node["storage"] = self._storage(storage.data_ptr(), storage.nbytes(), flat)
            node["offset"] = tensor.storage_offset()
        return node

    def _storage(self, start: int, size: int, flat: torch.Tensor | None, writeable: bool = True) -> int:
        if (start, size) not in self._known:
            if flat is not None:
                memory = flat.numpy()
            else:
                interface = {"data": (start, False), "shape": (size,), "typestr": "|u1", "version": 3}
                holder = type("Memory", (), {"__array_interface__": interface})()
                memory = np.asarray(holder) if size else np.empty(0, np.uint8)
            self._known[start, size] = len(self.storages)
            self.storages.append(_Storage(memory, self.size, flat, writeable))
            self.size += -(-max(size, 1) // 64) * 64
        return self._known[start, size]

    def places(self) -> list[list[int]]:
        """Offset and size of each storage in the arena, for the other side."""
        return [[storage.offset, len(storage.memory)] for storage in self.storages]

    def fill(self, arena: Arena) -> None:
        """Copy all storages into the arena."""
        for storage in self.storages:
            arena.bytes[storage.offset : storage.offset + len(storage.memory)] = storage.memory

    def changed(self, arena: Arena) -> bool:
        """Whether the other side wrote into the arena."""
        return any(
            not np.array_equal(arena.bytes[item.offset : item.offset + len(item.memory)], item.memory)
            for item in self.storages
        )

    def take_changes(self, arena: Arena) -> None:
        """Bring what the other side changed in the arena into the judge's own inputs."""
        for storage in self.storages:
            seen = arena.bytes[storage.offset : storage.offset + len(storage.memory)]
            if storage.writeable and not np.array_equal(seen, storage.memory):
                storage.memory[:] = seen


class Arguments:
    """The other side of Inputs: values over the mapped arena."""

    def __init__(self, memory: mmap.mmap, places: Sequence, objects: dict[int, object]) -> None:
        self.memory, self.places, self.objects = memory, places, objects
        self.leaves: dict[int, torch.Tensor] = {}
        self.bases: list[torch.Tensor] = [
            torch.frombuffer(memory, dtype=torch.uint8, count=size, offset=offset)
            if size
            else torch.empty(0, dtype=torch.uint8)
            for offset, size in places
        ]

    def value(self, node: object) -> object:
        """The value of a JSON node."""
        if not isinstance(node, dict):
            return node
        kind, content = node["t"], node.get("v")
        if kind == "tensor":
            return self._tensor(node)
        if kind == "array":
            offset, _ = self.places[node["storage"]]
            made = np.ndarray(
                tuple(node["shape"]),
                np.dtype(node["dtype"]),
                self.memory,
                offset + node["offset"],
                tuple(node["strides"]),
            )
            made.flags.writeable = node["writeable"]
            return made
        if kind == "scalar":
            return self.value(content)[()].copy()
        if kind in ("list", "tuple", "set"):
            return {"list": list, "tuple": tuple, "set": set}[kind](self.value(item) for item in content)
        if kind == "dict":
            return {self.value(key): self.value(item) for key, item in content}
        if kind == "object":
            return self.objects[content]
        return plain(kind, content)

    def _tensor(self, node: dict) -> torch.Tensor:
        dtype = getattr(torch, node["dtype"])
        if node["device"] != "cpu":
            made = torch.empty_strided(node["shape"], node["strides"], dtype=dtype, device=node["device"])
        else:
            storage = self.bases[node["storage"]].untyped_storage()
            made = torch.empty(0, dtype=dtype).set_(storage, node["offset"], node["shape"], node["strides"])
        if "grad" in node:
            made.requires_grad_()
            self.leaves[node["grad"]] = made
        return made


def plain(kind: str, content: object) -> object:
    """The value of a node of a simple kind. Raises Malformed."""
    if kind == "bytes" and isinstance(content, str):
        return bytes.fromhex(content)
    if kind == "complex":
        return complex(*content)
    if kind == "device" and isinstance(content, str):
        return torch.device(content)
    if kind in ("dtype", "memory_format") and isinstance(content, str):
        value = getattr(torch, content, None)
        if isinstance(value, torch.dtype if kind == "dtype" else torch.memory_format):
            return value
    raise Malformed(f"a value of an unknown kind, {kind!r:.40}")


class Results:
    """A result made ready for the way back, in the student's process."""

    def __init__(self, arguments: Arguments | None, keep: Callable[[object], int]) -> None:
        self.buffers: list[bytes] = []
        self.size = 0
        self.differentiable: list[torch.Tensor] = []
        self._keep = keep
        bases = arguments.bases if arguments else []
        self._ranges = [(base.data_ptr(), base.data_ptr() + base.numel()) for base in bases if base.numel()]
        self._numbers = [number for number, base in enumerate(bases) if base.numel()]

    def node(self, value: object) -> object:
        """The JSON node of a result; what is no plain value stays here and gets a number."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided:
            return self._tensor(value)
        if type(value) is np.ndarray and value.dtype.kind in "biufc":
            return {
                "t": "array",
                "dtype": value.dtype.str,
                "shape": list(value.shape),
                "buffer": self._buffer(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data),
            }
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            return {"t": "scalar", "v": self.node(np.asarray(value))}
        if isinstance(value, (list, tuple, set, frozenset, dict)):
            return container_node(value, self.node)
        if type(value) is bytes:
            return {"t": "bytes", "v": value.hex()}
        if type(value) is complex:
            return {"t": "complex", "v": [value.real, value.imag]}
        if type(value) in (torch.dtype, torch.device, torch.memory_format):
            return setting_node(value)
        if isinstance(value, (int, float, str)):  # an Enum, or a class of the student's own
            return {"t": "other", "type": type(value).__name__[:80]}
        return {
            "t": "object",
            "v": self._keep(value),
            "type": type(value).__name__[:80],
            "callable": callable(value),
        }

    def _tensor(self, tensor: torch.Tensor) -> dict:
        node = tensor_node(tensor)
        if tensor.requires_grad:
            node["grad"] = len(self.differentiable)
            self.differentiable.append(tensor)
        if tensor.device.type == "meta":
            return node
        data = tensor.detach().resolve_conj().resolve_neg()
        if data.numel() and (found := self._alias(data.data_ptr())):
            node["storage"], node["offset"] = found
            return node
        if not data.numel():
            node["buffer"] = self._buffer(memoryview(b""))
            return node
        for dim, stride in enumerate(data.stride()):
            if stride == 0 and data.shape[dim] > 1:
                data = data.narrow(dim, 0, 1)
        flat = data.cpu().permute(memory_order(node["strides"])).contiguous().reshape(-1).view(torch.uint8)
        node["buffer"] = self._buffer(flat.numpy().data)
        return node

    def stacked(self, values: list) -> object:
        """The node of a list; plain tensors of one kind, as most calls of a block give, go as one."""
        first = values[0] if values else None
        if type(first) is torch.Tensor and all(
            type(value) is torch.Tensor
            and value.dtype == first.dtype
            and value.device.type == "cpu"
            and value.is_contiguous()
            and not value.requires_grad
            and self._alias(value.data_ptr()) is None
            for value in values
        ):
            joined = torch.cat([value.reshape(-1) for value in values]).view(torch.uint8)
            return {
                "t": "stack",
                "dtype": str(first.dtype).removeprefix("torch."),
                "shapes": [list(value.shape) for value in values],
                "buffer": self._buffer(joined.numpy().data),
            }
        return self.node(values)

    def _alias(self, start: int) -> tuple[int, int] | None:
        """The storage of an input that an address lies in, and how far."""
        for number, (low, high) in zip(self._numbers, self._ranges, strict=True):
            if low <= start < high:
                return number, start - low
        return None

    def _buffer(self, data: memoryview) -> list[int]:
        self.buffers.append(data)
        self.size += len(data)
        return [self.size - len(data), len(data)]


class Reader:
    """A result as the judge reads it: every field is checked before it is used."""

    def __init__(self, payload: bytes, inputs: Inputs | None, make_object: Callable[[dict], object]) -> None:
        self._payload, self._inputs, self._make_object = payload, inputs, make_object
        self._nodes = self._bytes = 0
        self.differentiable: dict[int, torch.Tensor] = {}

    def value(self, node: object, depth: int = 0) -> object:
        """The value of a node. Raises Malformed."""
        try:
            return self._value(node, depth)
        except Malformed:
            raise
        except (
            TypeError,
            ValueError,
            KeyError,
            IndexError,
            RuntimeError,
            AttributeError,
            OverflowError,
        ) as error:
            raise Malformed(f"a value that cannot be read ({type(error).__name__})") from error

    def _value(self, node: object, depth: int) -> object:
        self._nodes += 1
        if self._nodes > MOST_NODES or depth > MOST_DEPTH:
            raise Malformed("a result with too many or too deeply nested parts")
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        kind, content = node["t"], node.get("v")
        if kind == "tensor":
            return self._tensor(node)
        if kind == "array":
            dtype = np.dtype(node["dtype"])
            if dtype.kind not in "biufc":
                raise Malformed("an array of an unknown type")
            shape = _sizes(node["shape"])
            data = self._data(node["buffer"], math.prod(shape) * dtype.itemsize)
            return np.frombuffer(data, dtype).reshape(shape)
        if kind == "scalar":
            return self._value(content, depth + 1)[()]
        if kind == "stack":
            return self._stack(node)
        if kind in ("list", "tuple", "set"):
            items = [self._value(item, depth + 1) for item in content]
            return {"list": list, "tuple": tuple, "set": set}[kind](items)
        if kind == "dict":
            return {self._value(key, depth + 1): self._value(item, depth + 1) for key, item in content}
        if kind in ("object", "other"):
            return self._make_object(node)
        return plain(kind, content)

    def _stack(self, node: dict) -> list[torch.Tensor]:
        dtype = getattr(torch, str(node["dtype"]))
        if not isinstance(dtype, torch.dtype) or len(node["shapes"]) > MOST_NODES:
            raise Malformed("tensors of an unknown dtype")
        shapes = [_sizes(shape) for shape in node["shapes"]]
        sizes = [math.prod(shape) for shape in shapes]
        data = self._data(node["buffer"], sum(sizes) * dtype.itemsize)
        flat = torch.frombuffer(data, dtype=dtype) if len(data) else torch.empty(0, dtype=dtype)
        return [part.view(shape) for part, shape in zip(flat.split(sizes), shapes, strict=True)]

    def _tensor(self, node: dict) -> torch.Tensor:
        dtype = getattr(torch, str(node["dtype"]))
        if not isinstance(dtype, torch.dtype):
            raise Malformed("a tensor of an unknown dtype")
        shape, strides = _sizes(node["shape"]), _sizes(node["strides"])
        if len(shape) != len(strides):
            raise Malformed("a tensor whose strides do not fit its shape")
        if node["device"] == "meta":
            made = torch.empty_strided(shape, strides, dtype=dtype, device="meta")
        elif "storage" in node:
            base = self._inputs.storages[node["storage"]]
            if node["offset"] % dtype.itemsize:
                raise Malformed("a tensor that starts within a number")
            flat = torch.from_numpy(base.memory) if base.tensor is None else base.tensor
            made = torch.empty(0, dtype=dtype).set_(
                flat.untyped_storage(), node["offset"] // dtype.itemsize, shape, strides
            )
        elif node["device"] == "cpu":
            made = self._own_memory(node, dtype, shape, strides)
        else:
            raise Malformed(f"a tensor on the device {node['device']!r:.20}")
        if "grad" in node:
            self.differentiable[int(node["grad"])] = made
        return made

    def _own_memory(
        self, node: dict, dtype: torch.dtype, shape: list[int], strides: list[int]
    ) -> torch.Tensor:
        if 0 in shape:
            return torch.empty_strided(shape, strides, dtype=dtype)
        sent = [1 if stride == 0 else size for size, stride in zip(shape, strides, strict=True)]
        data = self._data(node["buffer"], math.prod(sent) * dtype.itemsize)
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

    def _data(self, place: list, size: int) -> bytearray:
        start, length = place
        if length != size or not 0 <= start <= start + length <= len(self._payload):
            raise Malformed("a tensor whose size does not fit its shape")
        self._bytes += size
        if self._bytes > MOST_BYTES:
            raise Malformed("a result that is too large")
        return memoryview(self._payload)[start : start + length]


def memory_order(strides: Sequence[int]) -> list[int]:
    """The dimensions from the largest stride to the smallest: the order in which values lie in memory."""
    return sorted(range(len(strides)), key=lambda dim: -strides[dim])


def _sizes(values: list) -> list[int]:
    if len(values) > 64 or not all(type(value) is int and 0 <= value < 1 << 62 for value in values):
        raise Malformed("a shape that is none")
    return values
