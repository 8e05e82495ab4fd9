"""Tries to leave its namespaces, to mount, to trace others and to raise its limits.

# points: shift_cost=0
"""

# %% extra first
import ctypes
import os
import resource

libc = ctypes.CDLL(None, use_errno=True)
for flags in (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x10020000):
    if libc.unshare(flags) == 0:
        print("token-unshared", hex(flags))
if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0:
    print("token-mounted")
if libc.umount2(b"/proc", 2) == 0:
    print("token-unmounted")
for kind in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
    try:
        resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print("token-limit", kind)
    except (OSError, ValueError):
        pass
for pid in filter(str.isdigit, os.listdir("/proc")):
    if pid != str(os.getpid()) and libc.ptrace(16, int(pid), None, None) == 0:
        print("token-traced", pid)
        libc.ptrace(17, int(pid), None, None)


# %% shift answer
def shift(x, steps):
    return x.roll(steps, dims=1)
