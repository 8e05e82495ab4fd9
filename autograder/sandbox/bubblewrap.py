"""bubblewrap's command line: what the processes inside can see, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ..measuring import store

HOST_PROC = "/host-proc"
PACKAGE = Path(__file__).resolve().parents[1]

_SYSTEM_FOLDERS = ("/bin", "/lib", "/lib32", "/lib64", "/sbin")
_SYSTEM_FILES = ("ld.so.cache", "passwd", "group", "fonts", "localtime", "alternatives")


def why_it_fails(program: str) -> str | None:
    """Why bubblewrap does not work here, if it does not."""
    options = ["--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    trial = subprocess.run([program, *options, "true"], capture_output=True, text=True)
    return (trial.stderr.strip().splitlines() or ["no reason given"])[-1] if trial.returncode else None


def data_folder() -> Path | None:
    """The course's data folder, which exercises may read."""
    data = PACKAGE.parent / "data"
    return data if data.is_dir() else None


def command(program: str) -> list[str]:
    """The command that runs what follows it inside: Python, torch and this package, read-only; no network."""
    folders = dict.fromkeys(
        str(Path(folder).resolve())
        for folder in ("/usr", sys.prefix, sys.base_prefix, sys.exec_prefix, PACKAGE)
    )
    temporary = "/scratch" if any(Path(folder).is_relative_to("/tmp") for folder in folders) else "/tmp"
    line = [program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    # Not root in there, not even by name: the kernel refuses namespaces to a root without rights.
    line += ["--uid", "1000", "--gid", "1000", "--clearenv"]
    data = data_folder()
    private = [temporary, "/dev/shm", HOST_PROC]
    inside = environment(private, "/data" if data else "", "/cache", namespaces=True)
    for name, value in inside.items():
        line += ["--setenv", name, value]
    line += ["--tmpfs", "/tmp", "--proc", "/proc", "--dev", "/dev", "--tmpfs", temporary]
    # The kernel allows namespaces their own /proc only where a whole one is in sight; they cover this one.
    line += ["--bind", "/proc", HOST_PROC]
    for folder in _SYSTEM_FOLDERS:
        if os.path.islink(folder):
            line += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            line += ["--ro-bind", folder, folder]
    for folder in sorted(folders, key=len):
        line += ["--ro-bind", folder, folder]
    for name in _SYSTEM_FILES:
        line += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    if data:
        line += ["--ro-bind", str(data), "/data"]
    cache = store.folder()
    cache.mkdir(parents=True, exist_ok=True)
    line += ["--ro-bind", str(cache), "/cache/autograder"]
    line += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", temporary]
    if temporary != "/tmp":
        line += ["--remount-ro", "/tmp"]
    return [*line, "--"]


def environment(private: list[str], data: str, cache: str, *, namespaces: bool) -> dict[str, str]:
    """The environment of the fork server and all that come from it.

    The first of the ``private`` folders is their home; ``namespaces``: submissions are to have their own.
    """
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")}
    return threads | {
        # malloc keeps no small free pieces for later. Where it does, the place of each array depends on all
        # that its process did before, and the same code takes up to half as long again in another process.
        "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0",
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), "/usr/local/bin", "/usr/bin", "/bin"]),
        "PYTHONPATH": str(PACKAGE.parent),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": private[0],
        "TMPDIR": private[0],
        "LANG": "C.UTF-8",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "MPLCONFIGDIR": private[0],
        "XDG_CACHE_HOME": cache,
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_WAIT_POLICY": "PASSIVE",
        "AUTOGRADER_PRIVATE": ":".join(private),
        "AUTOGRADER_DATA": data,
        "AUTOGRADER_NAMESPACES": "yes" if namespaces else "",
    }
