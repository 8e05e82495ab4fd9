"""Private rooms for the processes that run a student's code, and the limits that they live under.

The room is a set of Linux namespaces of its own inside the sandbox: its own process numbers (so that it sees
and reaches no other process), its own /tmp, /dev/shm and /proc. When its first process is killed, the kernel
kills all the others.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import socket
import stat
import struct
import sys
from contextlib import suppress

_libc = ctypes.CDLL(None, use_errno=True)

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
_NOSUID, _NODEV, _NOEXEC, _REC, _PRIVATE = 2, 4, 8, 16384, 1 << 18
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 4, 36, 38

_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1

DISK = 256 << 20  # bytes in /tmp, and again in /dev/shm
FILE = 128 << 20  # bytes in one file
MEMORY = 2 << 30  # bytes of address space above what the warm process has
FILES = 512
PROCESSES = 64


def set_dumpable(value: bool) -> None:
    """Whether other processes of the same user may look into this one's memory."""
    _libc.prctl(_PR_SET_DUMPABLE, int(value), 0, 0, 0)


def adopt_orphans() -> None:
    """Make this process the parent of all its descendants whose parents end."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def enter_room(private: list[str]) -> None:
    """Move to new namespaces; the next child is the first process there. Raises OSError where not allowed.

    The folders in ``private`` become empty ones, which nobody outside the room sees.
    """
    uid, gid = os.getuid(), os.getgid()
    _check(_libc.unshare(_NEWUSER | _NEWNS | _NEWPID | _NEWIPC | _NEWNET), "unshare")
    for name, content in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(content)
    _mount("none", "/", None, _REC | _PRIVATE)
    _switch_loopback_on()
    for folder in private:
        _mount("tmpfs", folder, "tmpfs", _NOSUID | _NODEV, f"size={DISK},mode=1777")


def _switch_loopback_on() -> None:
    """Processes of one room may talk to each other, over the loopback interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def furnish_room() -> None:
    """In the first process of a room: a /proc that shows this room only, and no special rights."""
    try:
        _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    except OSError:
        _mount("tmpfs", "/proc", "tmpfs", _NOSUID | _NODEV | _NOEXEC, "size=4k,mode=555")
    # No further rooms from within, and no shared memory that outlives its processes.
    for name in ("user/max_user_namespaces", "kernel/shmmni", "kernel/msgmni"):
        with suppress(OSError), open(f"/proc/sys/{name}", "w") as file:
            file.write("0")
    drop_rights()


def drop_rights() -> None:
    """Give up all capabilities, and the ways to get new ones."""
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    header = struct.pack("<Ii", 0x20080522, 0)
    _check(_libc.capset(header, bytes(24)), "capset")


def address_space() -> int:
    """Bytes of address space of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def limit_memory(amount: int) -> None:
    """Bound the address space of this process and all that come from it, in bytes."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    amount = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
    resource.setrlimit(resource.RLIMIT_AS, (amount, amount))


def limit_resources(used: int) -> None:
    """Limits on memory, files and core dumps for this process and all that come from it.

    ``used`` is the address space of the warm process, in bytes.
    """
    limit_memory(used + MEMORY)
    for kind, amount in (
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_FSIZE, FILE),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 1 << 20),
    ):
        _, hard = resource.getrlimit(kind)
        amount = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(kind, (amount, amount))


def quiet_files(*keep: int) -> None:
    """Close every file but those in ``keep``; standard input, output and error lead nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    start = 3
    for number in sorted(keep):
        os.closerange(start, number)
        start = number + 1
    os.closerange(start, 1 << 16)


def children(pid: int) -> list[int]:
    """The live children of a process."""
    found = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    return found


def family(pid: int) -> list[int]:
    """A process and all its live descendants."""
    found, new = [], [pid]
    while new:
        found += new
        new = [child for parent in new for child in children(parent)]
    return found


def status(pid: int) -> dict[str, str]:
    """What /proc says about a process: Threads, VmRSS and so on; empty when it is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    except OSError:
        return {}


def state(pid: int) -> str:
    """The letter of a process's state: R, S, D, T (stopped), t, Z (ended); X when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1].decode() or "X"
    except OSError:
        return "X"


def private_bytes(pid: int) -> int:
    """Bytes of memory that a process would give back if it ended (its share of what is shared)."""
    with suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0


def last_pid() -> int:
    """The number of the newest process or thread in this process's room."""
    with open("/proc/loadavg") as file:
        return int(file.read().split()[4])


def hidden_bytes(pids: list[int]) -> int:
    """Bytes in files that these processes hold open and that have no name, such as those of memfd_create."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        with suppress(OSError):
            for number in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    about = os.stat(f"/proc/{pid}/fd/{number}")
                    if stat.S_ISREG(about.st_mode) and not about.st_nlink:
                        found[about.st_dev, about.st_ino] = about.st_blocks * 512
    return sum(found.values())


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [text if text is None else text.encode() for text in (source, target, kind)]
    _check(_libc.mount(*encoded, ctypes.c_ulong(flags), None if data is None else data.encode()), target)


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if not sys.platform.startswith("linux"):  # the calls above do not exist elsewhere
    raise ImportError("rooms need Linux")
