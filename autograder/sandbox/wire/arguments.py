"""The judge's inputs in the process that runs an answer: values over the shared memory.

What comes from the judge is trusted here, because the judge sent it.
"""

import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from . import messages
from .plain import from_node

_PLAIN = (float, int, bool, str, type(None))


class Arguments:
    """The other side of ``encode.Inputs``.

    ``storages`` are the judge's inputs as uint8 tensors over the mapped memory, or parts of ``memory`` where
    that is one, on a device. ``leaves`` are the tensors that want gradients, by number; ``ready`` what was
    made before the call that it is for.
    """

    def __init__(
        self,
        memory: mmap.mmap | bytes | torch.Tensor,
        places: Sequence[tuple[int, int]],
        objects: dict[int, object],
    ) -> None:
        self._memory: Any = memory
        self._places, self._objects = places, objects
        self.leaves: dict[int, torch.Tensor] = {}
        self.ready: list[Any] = []
        self.storages = [_storage(memory, *place) for place in places]

    def value(self, node: messages.Value) -> Any:
        if type(node) in _PLAIN:
            return node  # soon: there can be thousands of them, and a race waits
        match node:
            case messages.ReadyNode():
                return self.ready[node.number]
            case messages.TensorNode():
                return self._tensor(node)
            case messages.ArrayNode():
                return self._array(node)
            case messages.CollectionNode() | messages.PlainNode():
                return from_node(node, self.value)
            case messages.ObjectNode(number=int(number)):
                return self._objects[number]
            case _:
                return node

    def _array(self, node: messages.ArrayNode) -> Any:
        made: np.ndarray = np.ndarray(
            tuple(node.shape),
            np.dtype(node.dtype),
            self._memory,
            self._places[node.storage][0] + node.offset,
            tuple(node.strides),
        )
        made.flags.writeable = node.writeable
        return made[()].copy() if node.scalar else made

    def _tensor(self, node: messages.TensorNode) -> torch.Tensor:
        dtype = getattr(torch, node.dtype)
        if node.storage is None:
            made = torch.empty_strided(node.shape, node.strides, dtype=dtype, device=node.device)
        else:
            base = self.storages[node.storage]
            start = base.storage_offset() // dtype.itemsize + node.offset
            made = torch.empty(0, dtype=dtype, device=base.device)
            made = made.set_(base.untyped_storage(), start, node.shape, node.strides)
        if node.grad is not None:
            made.requires_grad_()
            self.leaves[node.grad] = made
        return made


def _storage(memory: mmap.mmap | bytes | torch.Tensor, offset: int, size: int) -> torch.Tensor:
    """One of the judge's inputs, as bytes."""
    if isinstance(memory, torch.Tensor):
        return memory[offset : offset + size]
    if not size:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer(memory, dtype=torch.uint8, count=size, offset=offset)
