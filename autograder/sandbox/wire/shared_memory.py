"""Sealed memory through which the judge hands inputs over, and sees what was done to them."""

import fcntl
import mmap
import os

import numpy as np


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
