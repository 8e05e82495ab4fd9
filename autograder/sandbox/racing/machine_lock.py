"""Who works on which of this machine's cores."""

import fcntl
import os
import random
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from ...measuring import store

LOOK_SECONDS = 0.02
_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


class MachineLock:
    """The machine's cores, which all graders of one user share; those of a process end with it."""

    def __init__(self) -> None:
        self._cores = cores()
        self._queue, *self._locks = map(_lock_file, ["queue", *map(str, range(len(self._cores)))])
        self._held: list[int] = []

    def take(self, number: int | None = None) -> list[int]:
        """Wait for so many cores (None: for all; no more than there are), and have them in place of those
        that it had. Whoever comes first is served first.
        """
        self.release()
        wanted = len(self._locks) if number is None else min(number, len(self._locks))
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        try:
            while not self._grab(wanted):
                time.sleep(LOOK_SECONDS)
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)
        return [self._cores[place] for place in self._held]

    def _grab(self, wanted: int) -> bool:
        """Have more of what is free now; whether that is enough."""
        for place in random.sample(range(len(self._locks)), len(self._locks)):
            if place not in self._held and len(self._held) < wanted:
                with suppress(BlockingIOError):
                    fcntl.flock(self._locks[place], fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._held.append(place)
        return len(self._held) == wanted

    def release(self) -> None:
        while self._held:
            fcntl.flock(self._locks[self._held.pop()], fcntl.LOCK_UN)


def cores() -> list[int]:
    """The cores that this process may use, by its affinity and its container's limit; of those that share a
    core's arithmetic units (hyper-threads) only one.
    """
    allowed = sorted(os.sched_getaffinity(0))
    found = list({_siblings(core): core for core in reversed(allowed)}.values())
    with suppress(OSError, ValueError):  # there is no limit
        group = Path("/proc/self/cgroup").read_text().strip().rpartition(":")[2].strip("/")
        quota, period = map(int, Path("/sys/fs/cgroup", group, "cpu.max").read_text().split())
        found = random.sample(found, min(len(found), max(1, quota // period)))
    return sorted(found)


def _siblings(core: int) -> str:
    """What is the same for two cores that are one."""
    with suppress(OSError):
        return Path(_SIBLINGS.format(core)).read_text()
    return str(core)


def _lock_file(name: str) -> int:
    """A file of this user's. In the folder for temporary ones, anybody may have put one of this name."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    for folder in (Path(tempfile.gettempdir()), store.folder()):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            file = os.open(folder / f"autograder-{os.getuid()}-{name}.lock", flags, 0o600)
            if os.fstat(file).st_uid == os.getuid():
                return file
            os.close(file)
    raise OSError(f"no lock for cores can be made in {tempfile.gettempdir()} or {folder}")
