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

# Names with their numbers on x86-64 and, where there is one, on ARM64.
_ALLOWED = """
access=21 chdir=80/49 chmod=90 chown=92 close=3/57 close_range=436/436 copy_file_range=326/285 creat=85
dup=32/23 dup2=33 dup3=292/24 eventfd=284 eventfd2=290/19 faccessat=269/48 faccessat2=439/439
fadvise64=221/223 fallocate=285/47 fchdir=81/50 fchmod=91/52 fchmodat=268/53 fchmodat2=452/452
fchown=93/55 fchownat=260/54 fcntl=72/25 fdatasync=75/83 fgetxattr=193/10 flistxattr=196/13 flock=73/32
fremovexattr=199/16 fstat=5/80 fstatfs=138/44 fsync=74/82 ftruncate=77/46 futimesat=261 getcwd=79/17
getdents=78 getdents64=217/61 getxattr=191/8 lchown=94 lgetxattr=192/9 link=86 linkat=265/37
listxattr=194/11 llistxattr=195/12 lremovexattr=198/15 lseek=8/62 lstat=6 mkdir=83 mkdirat=258/34
mknod=133 mknodat=259/33 newfstatat=262/79 open=2 openat=257/56 openat2=437/437 pipe=22 pipe2=293/59
pread64=17/67 preadv=295/69 preadv2=327/286 pwrite64=18/68 pwritev=296/70 pwritev2=328/287 read=0/63
readahead=187/213 readlink=89 readlinkat=267/78 readv=19/65 removexattr=197/14 rename=82 renameat=264/38
renameat2=316/276 rmdir=84 sendfile=40/71 signalfd=282 signalfd4=289/74 stat=4 statfs=137/43
statx=332/291 symlink=88 symlinkat=266/36 sync_file_range=277/84 truncate=76/45 umask=95/166 unlink=87
unlinkat=263/35 utime=132 utimensat=280/88 utimes=235 write=1/64 writev=20/66
brk=12/214 get_mempolicy=239/236 mbind=237/235 membarrier=324/283 mincore=27/232
mlock=149/228 mlock2=325/284 mlockall=151/230 mprotect=10/226 mremap=25/216 msync=26/227
munlock=150/229 munlockall=152/231 munmap=11/215 pkey_alloc=330/289 pkey_free=331/290
pkey_mprotect=329/288 set_mempolicy=238/237
arch_prctl=158 capget=125/90 capset=126/91 execve=59/221 execveat=322/281 exit=60/93 exit_group=231/94
fork=57 futex=202/98 futex_waitv=449/449 get_robust_list=274/100 getcpu=309/168 getegid=108/177
geteuid=107/175 getgid=104/176 getgroups=115/158 getpgid=121/155 getpgrp=111 getpid=39/172
getppid=110/173 getpriority=140/141 getresgid=120/150 getresuid=118/148 getrlimit=97/163
getrusage=98/165 getsid=124/156 gettid=186/178 getuid=102/174 ioprio_get=252/31 ioprio_set=251/30
kill=62/129 pidfd_open=434/434 pidfd_send_signal=424/424 prlimit64=302/261 restart_syscall=219/128
rseq=334/293 sched_get_priority_max=146/125 sched_get_priority_min=147/126 sched_getaffinity=204/123
sched_getattr=315/275 sched_getparam=143/121 sched_getscheduler=145/120 sched_rr_get_interval=148/127
sched_yield=24/124 set_robust_list=273/99 set_tid_address=218/96
setfsgid=123/152 setfsuid=122/151
setgid=106/144 setgroups=116/159 setpgid=109/154 setpriority=141/140 setregid=114/143 setresgid=119/149
setresuid=117/147 setreuid=113/145 setrlimit=160/164 setsid=112/157 setuid=105/146 sysinfo=99/179
tgkill=234/131 times=100/153 tkill=200/130 uname=63/160 vfork=58 wait4=61/260 waitid=247/95
alarm=37 clock_getres=229/114 clock_gettime=228/113 clock_nanosleep=230/115 epoll_create=213
epoll_create1=291/20 epoll_ctl=233/21 epoll_pwait=281/22 epoll_pwait2=441/441 epoll_wait=232
getitimer=36/102 getrandom=318/278 gettimeofday=96/169 nanosleep=35/101 pause=34 poll=7 ppoll=271/73
pselect6=270/72 rt_sigaction=13/134 rt_sigpending=127/136 rt_sigprocmask=14/135 rt_sigqueueinfo=129/138
rt_sigreturn=15/139 rt_sigsuspend=130/133 rt_sigtimedwait=128/137 rt_tgsigqueueinfo=297/240 select=23
setitimer=38/103 sigaltstack=131/132 time=201 timer_create=222/107 timer_delete=226/111
timer_getoverrun=225/109 timer_gettime=224/108 timer_settime=223/110
accept=43/202 accept4=288/242 bind=49/200 connect=42/203 getpeername=52/205 getsockname=51/204
getsockopt=55/209 listen=50/201 recvfrom=45/207 recvmmsg=299/243 recvmsg=47/212 sendmmsg=307/269
sendmsg=46/211 sendto=44/206 setsockopt=54/208 shutdown=48/210
"""

# Calls that are allowed with some arguments only.
_CLONE, _SOCKET, _SOCKETPAIR, _IOCTL, _PRCTL = (56, 220), (41, 198), (53, 199), (16, 29), (157, 167)
_MADVISE, _MMAP, _SET_AFFINITY = (28, 233), (9, 222), (203, 122)
_SET_ATTRIBUTE = ((188, 5), (189, 6), (190, 7))  # setxattr, lsetxattr, fsetxattr
_SECCOMP = (317, 277)

_NEW_NAMESPACES = 0x7E020000  # all CLONE_NEW… flags
_ROUTE = 0  # of netlink's protocols
_TYPE_INTO_TERMINAL = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_PR_SET_SECCOMP, _PR_SET_MM = 22, 35
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
        (_SOCKET, [*_families(socket.AF_UNIX, socket.AF_INET, socket.AF_INET6), *_routing_tables()]),
        (_SOCKETPAIR, [*_families(socket.AF_UNIX), _refuse(errno.EAFNOSUPPORT)]),
        (_IOCTL, [_argument(1), *_but(*_TYPE_INTO_TERMINAL), _give(_ALLOW)]),
        (_PRCTL, [_argument(0), *_but(_PR_SET_SECCOMP, _PR_SET_MM), _give(_ALLOW)]),
        # As on a kernel that does not know them: who asks for them does without.
        (_MADVISE, [_argument(2), *_each(_FORGET_THAT_IT_WAS_USED, _refuse(errno.EINVAL)), _give(_ALLOW)]),
        (_MMAP, [_argument(3), (_HAS_BITS, 0, 1, _HUGE_PAGES), _refuse(errno.ENOMEM), _give(_ALLOW)]),
        (_SET_AFFINITY, [_refuse(0)]),  # it does nothing: both sides of a race are on the judge's core
        *((numbers, [_refuse(errno.EOPNOTSUPP)]) for numbers in _SET_ATTRIBUTE),
    ):
        code += [(_EQUAL, 0, len(block), numbers[place]), *block]
    for first, last in _runs(sorted(_allowed(place))):
        code += [(_AT_LEAST, 0, 2, first), (_GREATER, 1, 0, last), _give(_ALLOW)]
    code.append(_refuse(errno.ENOSYS))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _allowed(place: int) -> list[int]:
    """The numbers of the calls that are allowed with any arguments."""
    numbers = [entry.partition("=")[2].split("/") for entry in _ALLOWED.split()]
    return [int(known[place]) for known in numbers if len(known) > place]


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Sorted numbers as the first and last of each piece without gaps."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


def _families(*allowed: int) -> list[Instruction]:
    """Allow these families of sockets."""
    return [_argument(0), *_each(allowed, _give(_ALLOW))]


def _routing_tables() -> list[Instruction]:
    """Of netlink's sockets allow those that tell what network interfaces there are; refuse all others."""
    return [
        (_EQUAL, 1, 0, socket.AF_NETLINK), _refuse(errno.EAFNOSUPPORT),
        _argument(2), (_EQUAL, 0, 1, _ROUTE), _give(_ALLOW), _refuse(errno.EAFNOSUPPORT),
    ]  # fmt: skip


def _but(*values: int) -> list[Instruction]:
    """Refuse these values of the argument that was loaded."""
    return _each(values, _refuse(errno.EPERM))


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
