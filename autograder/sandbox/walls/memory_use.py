"""How much memory processes use during a call, read from outside: none of it is told by these processes.

What is new in a call is known to some hundred kilobytes: the most that is resident at once, above what was
there before. What was kept from before is known to some megabytes: Python and torch touch much of theirs.
What cannot be seen counts as a doubt, never as nothing.
"""

import ctypes
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from io import BufferedReader

# What a call may bring with it, in bytes, beside twice what is counted: operations need memory within, too;
# and what it may touch of what was there.
NEW, KEPT = 1 << 19, 4 << 20

_FREE = 1 / 8  # of an area: some is always
_DONTDUMP = 16  # of madvise; here only a mark, which keeps the kernel from merging old memory with new
_FORGET_TOUCHED, _FORGET_PEAK = "1", "5"
_AREA = re.compile(
    rb"^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+ *(.*)\n(?:[A-Z].*\n)*?Rss: +(\d+) kB\n"
    rb"(?:[A-Z].*\n)*?Referenced: +(\d+) kB\nAnonymous: +(\d+) kB\n",
    re.MULTILINE,
)
_RESIDENT = re.compile(r"(?m)^(VmHWM|VmRSS|RssAnon|RssShmem):\s+(\d+)")
_INPUTS = b"/memfd:inputs"

# Areas of memory, from start to end, with the bytes that were free there, if these were many.
_loaded: list[tuple[int, int, int]] = []


def set_apart() -> None:
    """What this process has in memory now is Python's, torch's and ours: in its forks, it does not count.

    What is put later where nothing was yet, in the same areas, does.
    """
    libc = ctypes.CDLL(None)
    with open("/proc/self/smaps", "rb") as file:
        areas = _AREA.findall(file.read())
    for start, end, permissions, name, resident, *_ in areas:
        first, last = int(start, 16), int(end, 16)
        if permissions == b"rw-p" and name != b"[stack]":
            libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _DONTDUMP)
            free = last - first - 1024 * int(resident)
            _loaded.append((first, last, free if free > _FREE * (last - first) else 0))


class MemoryUse:
    """Memory of these processes from now on, beside ``inputs`` (bytes). Raises OSError where one hides."""

    def __init__(self, pids: Sequence[int], inputs: int) -> None:
        self._areas: dict[int, BufferedReader] = {}
        for pid in pids:
            for what in (_FORGET_PEAK, _FORGET_TOUCHED):
                with open(f"/proc/{pid}/clear_refs", "w") as file:
                    file.write(what)
            # It stays that of the memory that the process has now, whatever it runs later.
            self._areas[pid] = open(f"/proc/{pid}/smaps", "rb")  # noqa: SIM115 (``most`` closes it)
        self._before = sum(map(_resident, pids), Counter(VmRSS=inputs, RssShmem=inputs))
        self._grown = 0

    def look(self) -> None:
        """See how much more of their own they have now: pages of files come and go, and hide that."""
        with suppress(OSError):
            now = sum(map(_resident, self._areas), Counter[str]())
            own = (now[kind] - self._before[kind] for kind in ("RssAnon", "RssShmem"))
            # Of inputs that are there no more, the place is no other memory's.
            self._grown = max(self._grown, sum(max(0, more) for more in own))

    def most(self, pids: Sequence[int], counted: int) -> int:
        """The most bytes that they, now ``pids``, used at once; 0 if those that were ``counted`` explain it.

        Raises OSError where one has ended meanwhile, or runs another program.
        """
        self.look()
        sums, touched = Counter[str](), 0
        for pid in pids:
            with self._areas.pop(pid, None) or open(f"/proc/{pid}/smaps", "rb") as file:
                touched += _touched(file.read())
            sums += _resident(pid)
        if self._areas:
            raise ProcessLookupError("a process has ended")
        new = sums["VmHWM"] - self._before["VmRSS"]
        # A page that is there now and was not touched was there all the time.
        used = sums["VmHWM"] - sums["VmRSS"] + touched
        found = [(new, NEW), (self._grown, NEW), (used, KEPT)]
        return max([figure for figure, beside in found if figure > 2 * counted + beside], default=0)


def _resident(pid: int) -> Counter[str]:
    """In bytes: what is resident, of each kind, and the most that was since ``_FORGET_PEAK``."""
    with open(f"/proc/{pid}/status") as file:
        found = {kind: 1024 * int(number) for kind, number in _RESIDENT.findall(file.read())}
    if not found:  # it has ended, or its first thread has
        raise ProcessLookupError(f"process {pid} does not say how much memory it has")
    return Counter(found)


def _touched(areas: bytes) -> int:
    """Bytes that a process has of its own, or shares with others, and that were touched since."""
    if not areas:
        raise ProcessLookupError("the memory is gone")
    old, new = Counter[tuple[int, int, int]](), 0
    for start, end, permissions, name, _, referenced, own in _AREA.findall(areas):
        touched = 1024 * (int(referenced) if permissions.endswith(b"s") else min(int(referenced), int(own)))
        if not touched:  # as most are
            continue
        first, last = int(start, 16), int(end, 16)
        if within := next((area for area in _loaded if area[0] <= first and last <= area[1]), None):
            old[within] += touched
        elif not name.startswith(_INPUTS):
            new += touched
    return new + sum(min(touched, free) for (_, _, free), touched in old.items())
