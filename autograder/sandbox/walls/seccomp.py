"""The system calls that a process with a student's code may make: all others fail, as if the kernel had none.

The list is generous, so that Python, torch, compilers and whatever they start go on working. It has no call
that looks into other processes, enters or makes namespaces, mounts, loads programs into the kernel, or leaves
something behind in it (keys, message queues, System V memory). ``memfd_create`` is not on it either: memory
behind a file without a name can be queued in a socket, where nobody sees it.
"""

import ctypes
import errno
import functools
import os
import platform
import socket
import struct
from itertools import groupby
from pathlib import Path

# Names with their numbers on x86-64 and, where there is one, on ARM64.
_TABLE = Path(__file__).with_name("system_calls.txt").read_text(encoding="utf-8")
_ALLOWED = [entry.partition("=")[2].split("/") for entry in _TABLE.split()]

# Calls that are allowed with some arguments only.
_CLONE, _SOCKET, _SOCKETPAIR, _IOCTL, _PRCTL = (56, 220), (41, 198), (53, 199), (16, 29), (157, 167)
_MADVISE, _MMAP, _SET_AFFINITY = (28, 233), (9, 222), (203, 122)
_SET_ATTRIBUTE = ((188, 5), (189, 6), (190, 7))  # setxattr, lsetxattr, fsetxattr
_SECCOMP = (317, 277)

_NEW_NAMESPACES = 0x7E020000  # all CLONE_NEW… flags
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)  # of sockets
_ROUTE = 0  # of netlink's protocols
_TYPE_INTO_TERMINAL = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_FILTER_OR_MEMORY = (22, 35)  # PR_SET_SECCOMP, PR_SET_MM
_FORGET_THAT_IT_WAS_USED = (8, 20, 21)  # MADV_FREE, MADV_COLD, MADV_PAGEOUT
_HUGE_PAGES = 0x40000  # MAP_HUGETLB: they are not part of what is resident

_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _EQUAL, _GREATER, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32 = 0x40000000
_SET_MODE_FILTER, _SPEC_ALLOW = 1, 4

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, value


# A processor architecture's number in filters, and its place in the tables above.
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def is_supported() -> bool:
    """Whether the numbers of this machine's system calls are known here."""
    return platform.machine() in _MACHINES


def restrict() -> None:
    """Let this process and all that come from it make only these system calls, from now on.

    It must not be able to get new rights (``linux.drop_rights``). Raises OSError where that is not possible.
    """
    _, place = _MACHINES[platform.machine()]
    code = program(platform.machine())
    libc = ctypes.CDLL(None, use_errno=True)
    taken = _Program(len(code) // 8, code)
    if libc.syscall(_SECCOMP[place], _SET_MODE_FILTER, _SPEC_ALLOW, ctypes.byref(taken)):
        error = ctypes.get_errno()
        raise OSError(error, f"seccomp: {os.strerror(error)}")


@functools.cache
def program(architecture: str) -> bytes:
    """The filter for an architecture, as the kernel takes it: instructions of eight bytes."""
    audit, place = _MACHINES[architecture]
    code: list[Instruction] = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, audit), _give(_KILL)]
    code += [(_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _X32), _refuse(errno.ENOSYS)]
    for numbers, block in (
        (_CLONE, [_argument(0), (_HAS_BITS, 0, 1, _NEW_NAMESPACES), _refuse(errno.EPERM), _give(_ALLOW)]),
        (_SOCKET, [_argument(0), *_each(_FAMILIES, _give(_ALLOW)), *_routing_tables()]),
        (_SOCKETPAIR, [_argument(0), *_each((socket.AF_UNIX,), _give(_ALLOW)), _refuse(errno.EAFNOSUPPORT)]),
        (_IOCTL, [_argument(1), *_each(_TYPE_INTO_TERMINAL, _refuse(errno.EPERM)), _give(_ALLOW)]),
        (_PRCTL, [_argument(0), *_each(_FILTER_OR_MEMORY, _refuse(errno.EPERM)), _give(_ALLOW)]),
        # As on a kernel that does not know them: who asks for them does without.
        (_MADVISE, [_argument(2), *_each(_FORGET_THAT_IT_WAS_USED, _refuse(errno.EINVAL)), _give(_ALLOW)]),
        (_MMAP, [_argument(3), (_HAS_BITS, 0, 1, _HUGE_PAGES), _refuse(errno.ENOMEM), _give(_ALLOW)]),
        (_SET_AFFINITY, [_refuse(0)]),  # it does nothing: both sides of a race are on the judge's core
        *((numbers, [_refuse(errno.EOPNOTSUPP)]) for numbers in _SET_ATTRIBUTE),
    ):
        code += [(_EQUAL, 0, len(block), numbers[place]), *block]
    allowed = sorted(int(numbers[place]) for numbers in _ALLOWED if len(numbers) > place)
    for _, run in groupby(enumerate(allowed), lambda one: one[1] - one[0]):  # each without gaps
        calls = [number for _, number in run]
        code += [(_AT_LEAST, 0, 2, calls[0]), (_GREATER, 1, 0, calls[-1]), _give(_ALLOW)]
    code.append(_refuse(errno.ENOSYS))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _routing_tables() -> list[Instruction]:
    """Of netlink's sockets allow those that tell what network interfaces there are; refuse all others."""
    return [
        (_EQUAL, 1, 0, socket.AF_NETLINK), _refuse(errno.EAFNOSUPPORT),
        _argument(2), (_EQUAL, 0, 1, _ROUTE), _give(_ALLOW), _refuse(errno.EAFNOSUPPORT),
    ]  # fmt: skip


def _each(values: tuple[int, ...], action: Instruction) -> list[Instruction]:
    """Do this where what was loaded is one of these values."""
    return [instruction for value in values for instruction in ((_EQUAL, 0, 1, value), action)]


def _argument(number: int) -> Instruction:
    """Load the lower half of an argument."""
    return _LOAD, 0, 0, _ARGUMENTS + 8 * number


def _give(action: int) -> Instruction:
    return _RETURN, 0, 0, action


def _refuse(error: int) -> Instruction:
    return _give(_ERROR | error)
