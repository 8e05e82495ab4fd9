"""How much memory processes use during a call, read from outside: none of it is told by these processes.

What is new in a call is known to some hundred kilobytes: the most that is resident at once, above what was
there before. What was kept from before is known to some megabytes: Python and torch touch much of theirs.
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

# What a call may bring with it, in bytes, beside twice what is counted: operations need memory within, too.
NEW = 1 << 19
# What it may touch of what was there: so many bytes and a quarter of what it leaves alone, up to a most.
KEPT, MOST_KEPT = 1 << 20, 16 << 20

_DONTDUMP = 16  # of madvise; here only a mark, which keeps the kernel from merging old memory with new
_FORGET_TOUCHED, _FORGET_PEAK = "1", "5"
_AREA = re.compile(
    rb"^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+ *(.*)\n(?:[A-Z].*\n)*?Referenced: +(\d+) kB\n"
    rb"Anonymous: +(\d+) kB\n",
    re.MULTILINE,
)
_INPUTS = b"/memfd:inputs"

_loaded: list[tuple[int, int]] = []


def set_apart() -> None:
    """What this process has in memory now is Python's, torch's and ours: in its forks, it does not count."""
    libc = ctypes.CDLL(None)
    for start, end in _writable():
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _DONTDUMP)
    _loaded[:] = _writable()


def _writable() -> Iterator[tuple[int, int]]:
    with open("/proc/self/maps") as maps:
        lines = [line.split() for line in maps]
    for line in lines:
        if line[1][1] == "w" and line[-1] != "[stack]":
            start, end = line[0].split("-")
            yield int(start, 16), int(end, 16)


class MemoryUse:
    """The memory of these processes, from now on. Raises OSError where this machine does not let us look."""

    def __init__(self, pids: Sequence[int]) -> None:
        for pid in pids:
            for what in (_FORGET_PEAK, _FORGET_TOUCHED):
                with open(f"/proc/{pid}/clear_refs", "w") as file:
                    file.write(what)
        self._before = sum(_resident(pid).get("VmRSS", 0) for pid in pids)

    def most(self, pids: Sequence[int], inputs: int, counted: int) -> int:
        """The most bytes that they have used at once since then; 0 if those that were ``counted`` explain it.

        ``pids`` are the processes that there are now, and ``inputs`` the bytes that the judge has put there.
        """
        sums: Counter[str] = Counter()
        for pid in pids:
            with suppress(ProcessLookupError):
                sums.update(_resident(pid))
                sums.update(_own(pid))
        new = sums["VmHWM"] - self._before - inputs
        # A page that is there now and was not touched was there all the time.
        used = sums["VmHWM"] - sums["VmRSS"] + sums["touched"]
        found = {new: NEW, used: min(KEPT + sums["untouched"] // 4, MOST_KEPT)}
        return max([figure for figure, beside in found.items() if figure > 2 * counted + beside], default=0)


def _resident(pid: int) -> dict[str, int]:
    """In bytes: what is resident, and the most that was since ``_FORGET_PEAK``; nothing of what has ended."""
    with open(f"/proc/{pid}/status") as file:
        lines = (line.split() for line in file)
        return {line[0][:-1]: 1024 * int(line[1]) for line in lines if line[0] in ("VmHWM:", "VmRSS:")}


def _own(pid: int) -> dict[str, int]:
    """In bytes: what a process has of its own, or shares with others, and was touched since, or not."""
    with open(f"/proc/{pid}/smaps", "rb") as file:
        areas = _AREA.findall(file.read())
    touched = untouched = 0
    for start, end, permissions, name, referenced, own in areas:
        first, last = int(start, 16), int(end, 16)
        if not name.startswith(_INPUTS) and not any(low <= first and last <= high for low, high in _loaded):
            of_area = int(referenced) if permissions.endswith(b"s") else min(int(referenced), int(own))
            touched += of_area
            untouched += max(0, int(own) - of_area)
    return {"touched": 1024 * touched, "untouched": 1024 * untouched}
