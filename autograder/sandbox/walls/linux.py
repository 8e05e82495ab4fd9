"""What the sandbox asks of Linux: namespaces, limits, capabilities, and facts from /proc.

Every process that runs an answer gets a set of namespaces of its own inside bubblewrap's: its own process
numbers (so that it sees and reaches no other process), its own /tmp, /dev/shm and /proc. When their first
process is killed, the kernel kills all the others.
"""

import ctypes
import fcntl
import os
import resource
import signal
import socket
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import psutil

_libc = ctypes.CDLL(None, use_errno=True)

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_PR_SET_PTRACER = 0x59616D61
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
_CREATE_RULESET, _RESTRICT_SELF, _NO_SIGNALS = 444, 446, 2  # of Landlock

_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_MMAP_THRESHOLD, _SMALL_MMAP_THRESHOLD = 32 << 20, 64 << 10

DISK = 256 << 20  # bytes in /tmp, and again in /dev/shm
NAMES = 50_000  # files and folders in each of these
TERMINALS = 8
FILE = 128 << 20  # bytes in one file
MEMORY = 2 << 30  # bytes of address space above what the fork server has
FILES = 512
SIGNALS = 64  # that wait; as many timers, which the kernel looks after in the time of whoever runs then
PROCESSES = 64
THREADS = 1000  # of all processes together
SOCKETS = 1000  # also those that nobody has open, such as queued ones; each may hold some 100 kB
TCP_BUFFER = "4096 16384 262144"  # bytes: least, at first, most


def set_dumpable(value: bool) -> None:
    """Whether other processes of the same user may look into this one's memory."""
    _libc.prctl(_PR_SET_DUMPABLE, int(value), 0, 0, 0)


def let_others_read() -> None:
    """Let other processes of the same user read this one's memory, also where only parents may."""
    set_dumpable(True)
    _libc.prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)


def adopt_orphans() -> None:
    """Make this process the parent of all its descendants whose parents end."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def enter_namespaces(private: list[str]) -> None:
    """Move to new namespaces; the next child is their first process. Raises OSError where that is not
    allowed.

    The folders in ``private`` become empty ones, which nobody outside sees.
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
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        # Processes in there may talk to each other, over the loopback interface.
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    for folder in private:
        _mount("tmpfs", folder, "tmpfs", _NOSUID | _NODEV, f"size={DISK},nr_inodes={NAMES},mode=1777")
    # The machine has some thousand terminals for everybody.
    _mount("devpts", "/dev/pts", "devpts", _NOSUID | _NOEXEC, f"newinstance,ptmxmode=0666,max={TERMINALS}")


def prepare_first_process() -> None:
    """In the first process of new namespaces: a /proc that shows these only, and no special rights."""
    try:
        _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    except OSError:
        _mount("tmpfs", "/proc", "tmpfs", _NOSUID | _NODEV | _NOEXEC, "size=4k,mode=555")
    # No further namespaces from within, and no shared memory that outlives its processes.
    limits = dict.fromkeys(("user/max_user_namespaces", "kernel/shmmni", "kernel/msgmni"), "0")
    limits |= dict.fromkeys(("net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem"), TCP_BUFFER)
    for name, value in limits.items():
        with suppress(OSError), open(f"/proc/sys/{name}", "w") as file:
            file.write(value)
    # Whoever can write there can have the kernel forget how much memory a process used.
    _mount("none", "/proc", None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    drop_rights()


def drop_rights() -> None:
    """Give up all capabilities, and the ways to get new ones."""
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    header = struct.pack("<Ii", 0x20080522, 0)
    _check(_libc.capset(header, bytes(24)), "capset")


def keep_apart() -> None:
    """Let this process and all that come from it look into no other and signal none, where the kernel has a
    Landlock that does that (Linux 6.12). They must not be able to get new rights.
    """
    rules = _libc.syscall(_CREATE_RULESET, struct.pack("=QQQ", 0, 0, _NO_SIGNALS), ctypes.c_size_t(24), 0)
    if rules >= 0:
        _libc.syscall(_RESTRICT_SELF, rules, 0)
        os.close(rules)


def address_space() -> int:
    """Bytes of address space of this process."""
    return int(psutil.Process().memory_info().vms)


def limit_memory(amount: int) -> None:
    """Bound the address space of this process and all that come from it, in bytes, and what they lock."""
    _limit(resource.RLIMIT_AS, amount)
    _limit(resource.RLIMIT_MEMLOCK, 1 << 20)


def limit_resources() -> None:
    """Limits on files, signals and core dumps for this process and all that come from it."""
    _limit(resource.RLIMIT_NOFILE, FILES)
    _limit(resource.RLIMIT_SIGPENDING, SIGNALS)
    _limit(resource.RLIMIT_FSIZE, FILE)
    _limit(resource.RLIMIT_CORE, 0)


def _limit(kind: int, amount: int) -> None:
    _, hard = resource.getrlimit(kind)
    amount = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
    resource.setrlimit(kind, (amount, amount))


def quiet_files(keep: int) -> None:
    """Close every file but this one; standard input, output and error lead nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    os.closerange(3, keep)
    os.closerange(keep + 1, 1 << 16)


def children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in threads(pid):
        with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
            found += map(int, file.read().split())
    return found


def with_descendants(pid: int) -> list[int]:
    found, new = [], [pid]
    while new:
        found += new
        new = [child for parent in new for child in children(parent)]
    return found


def voluntary_switches(pid: int) -> int:
    """How often a process has waited so far; 0 when it is gone."""
    with suppress(OSError, psutil.Error):
        return psutil.Process(pid).num_ctx_switches().voluntary
    return 0


def state(pid: int) -> str:
    """The letter of a process's state: R, S, D, T (stopped), t, Z (ended); X when it is gone."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b") ")[2][:1].decode() or "X"
    return "X"


def states(pid: int) -> str:
    return "".join(map(state, threads(pid))) or "X"


def last_pid() -> int:
    """The number of the newest process or thread in this process's namespace."""
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


def count_sockets(pid: int) -> int:
    """How many sockets there are in the network namespace of a process, also those queued in others."""
    with suppress(OSError, ValueError), open(f"/proc/{pid}/net/sockstat") as file:
        return int(file.readline().split()[-1])
    return 0


def threads(pid: int) -> list[int]:
    """The numbers of a process's threads; none when it is gone."""
    with suppress(OSError):
        return [*map(int, os.listdir(f"/proc/{pid}/task"))]
    return []


def live_threads(pids: list[int]) -> set[int]:
    """The numbers of all threads of these processes that still run."""
    return {thread for pid in pids for thread in threads(pid) if alive(thread)}


def alive(pid: int) -> bool:
    """Whether a process still runs; one that only waits to be counted does not."""
    return state(pid) not in "ZX"


def kill(pid: int) -> None:
    """End a process, if it is still there."""
    send_signal(pid, signal.SIGKILL)


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    if pid > 1:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end_descendants() -> None:
    """End all that came from this process; it must have adopted those whose parents ended."""
    me = os.getpid()
    with suppress(ChildProcessError):  # which says that there is none any more
        while True:
            for pid in with_descendants(me)[1:]:
                kill(pid)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            os.waitpid(-1, 0)


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process so far, as the kernel counts it; 0 when it is gone."""
    with suppress(OSError):
        return time.clock_gettime(~pid << 3 | 2)
    return 0.0


def make_safe_to_fork() -> None:
    """One torch thread, and malloc's thresholds pinned. Raises RuntimeError where there are threads already.

    A child that is forked from a process with threads could hang.
    """
    import torch  # here, and not where this module is loaded: that is before the fork server is set up

    torch.set_num_threads(1)
    if (running := len(threads(os.getpid()))) > 1:
        raise RuntimeError(
            f"this process has {running} threads, so it cannot be forked safely. "
            "Set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1 before Python starts, and use no torch threads."
        )
    keep_free_memory()


def keep_free_memory() -> None:
    """Have malloc give nothing back to the kernel: what is free is there for the next call."""
    _libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
    _libc.mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)


def return_free_memory() -> None:
    """Have malloc give back what is free now, and from now on each larger piece as soon as it is free."""
    _libc.mallopt(_M_MMAP_THRESHOLD, _SMALL_MMAP_THRESHOLD)
    _libc.mallopt(_M_TRIM_THRESHOLD, _SMALL_MMAP_THRESHOLD)
    _libc.malloc_trim(0)


@contextmanager
def first_kept_free(cores: list[int]) -> Iterator[int | None]:
    """Keep this process on these cores, but off the first, and that one awake: a core that sleeps takes its
    time to wake up, and may find its caches empty then. Gives it, or None where there is no other.
    """
    core, *others = cores
    if not others:
        yield None
        return
    before = os.sched_getaffinity(0)
    spinner = os.fork()
    if not spinner:
        _spin(core)
    try:
        os.sched_setaffinity(0, others)
        yield core
    finally:
        os.sched_setaffinity(0, before)
        os.kill(spinner, signal.SIGKILL)
        os.waitpid(spinner, 0)


def _spin(core: int) -> NoReturn:
    """Do nothing on a core, whenever nobody else wants it, until the parent is gone."""
    try:
        _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        os.sched_setaffinity(0, {core})
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        while True:
            pass
    finally:
        os._exit(1)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [text if text is None else text.encode() for text in (source, target, kind)]
    _check(_libc.mount(*encoded, ctypes.c_ulong(flags), None if data is None else data.encode()), target)


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
