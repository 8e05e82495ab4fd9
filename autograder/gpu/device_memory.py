"""Memory on a device that two processes use: one makes it, the other opens it with a ticket."""

import ctypes
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import torch

from ..measuring.duel import DuelError
from ..sandbox.wire.encode import SharedMemory

_PEERS_LATER = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, the only flag there is


@dataclass
class DeviceMemory:
    """Memory that another process can open; ``contents`` is a uint8 tensor over it.

    ``ticket`` and ``files`` are for ``opened``: a handle of the driver's for a GPU, a file for the CPU.
    """

    contents: torch.Tensor
    ticket: bytes = b""
    files: list[int] = field(default_factory=list)

    def close(self) -> None:
        """Give it back; ``contents`` must not be used any more."""
        for file in self.files:
            os.close(file)
        if self.ticket:
            _ask("cuMemFree_v2", ctypes.c_uint64(self.contents.data_ptr()))


def allocate(size: int, device: str) -> DeviceMemory:
    """``size`` bytes on "cpu" or "cuda". Raises DuelError."""
    if device == "cpu":
        shared = SharedMemory(size)
        return DeviceMemory(torch.from_numpy(shared.bytes), files=[shared.file])
    torch.zeros(1, device=device)  # so that torch's context is the one of this thread
    address, handle = ctypes.c_uint64(), _Handle()
    # Not from torch's own pool: a handle stands for a whole allocation of the driver's.
    _ask("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    _ask("cuIpcGetMemHandle", ctypes.byref(handle), address)
    return DeviceMemory(_tensor(address, size, device), bytes(handle))


def opened(size: int, device: str, ticket: bytes, files: Sequence[int]) -> torch.Tensor:
    """Another process's ``DeviceMemory``, as a uint8 tensor. Raises DuelError."""
    if device == "cpu":
        return torch.frombuffer(mmap.mmap(files[0], size), dtype=torch.uint8)
    torch.zeros(1, device=device)  # as above
    address, handle = ctypes.c_uint64(), _Handle.from_buffer_copy(ticket)
    _ask("cuIpcOpenMemHandle_v2", ctypes.byref(address), handle, ctypes.c_uint(_PEERS_LATER))
    return _tensor(address, size, device)


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_byte * 64),)


def _tensor(address: ctypes.c_uint64, size: int, device: str) -> torch.Tensor:
    """A tensor over memory that is not torch's own."""
    about = {"data": (address.value or 0, False), "shape": (size,), "typestr": "|u1", "version": 3}
    return torch.as_tensor(SimpleNamespace(__cuda_array_interface__=about), device=device)


def _ask(name: str, *arguments: object) -> None:
    """Call a function of the driver's. Raises DuelError, with its number of the error, where it refuses."""
    if error := getattr(ctypes.CDLL("libcuda.so.1"), name)(*arguments):
        raise DuelError(f"the driver refused {name} (error {error}).")
