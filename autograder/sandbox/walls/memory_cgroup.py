"""A bound on all memory of a submission's processes together, the kernel's for them included.

Only a control group can give it, and only where systemd has delegated one to whoever grades
(``systemd-run --user --scope -p Delegate=yes make grade …``). Everywhere else the processes' own memory is
watched, and the ways to more are bounded one by one (``linux``, ``seccomp``).
"""

import functools
import os
from contextlib import suppress
from pathlib import Path

MOST = 6 << 30  # bytes of all processes that run answers or given versions


@functools.cache
def delegated(root: Path = Path("/")) -> Path | None:
    """The control group in which this process may make others with a limit on memory; None without one.

    All processes in it are moved to a group below it: the kernel gives limits to groups below only then. It
    is found once, because afterwards this process is in another one.
    """
    with suppress(OSError, ValueError):
        own = _own(root)
        controllers = (own / "cgroup.controllers").read_text().split()
        if "memory" in controllers and os.getxattr(own, "user.delegate") == b"1":
            graders = own / "graders"
            graders.mkdir(exist_ok=True)
            for pid in (own / "cgroup.procs").read_text().split():
                (graders / "cgroup.procs").write_text(pid)
            (own / "cgroup.subtree_control").write_text("+memory")
            return own
    return None


def _own(root: Path) -> Path:
    """This process's group in the second version's tree. Raises ValueError where it has none."""
    lines = (root / "proc/self/cgroup").read_text().splitlines()
    path = next((line[3:] for line in lines if line.startswith("0::")), None)
    mounts = [line.split() for line in (root / "proc/self/mounts").read_text().splitlines()]
    place = next((mount[1] for mount in mounts if mount[2] == "cgroup2"), None)
    if path is None or place is None:
        raise ValueError("no control groups of the second version")
    return root / place.lstrip("/") / path.lstrip("/")


def make(parent: Path, name: str) -> Path:
    """A group below ``parent`` for the processes of one sandbox's submissions. Raises OSError."""
    group = parent / name
    group.mkdir()
    (group / "memory.max").write_text(str(MOST))
    for file, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
        with suppress(OSError):  # older kernels
            (group / file).write_text(value)
    return group


def join(group: str) -> None:
    """Move this process into a group; all that come from it will be there, too. Raises OSError."""
    with open(os.path.join(group, "cgroup.procs"), "w") as file:
        file.write("0")
