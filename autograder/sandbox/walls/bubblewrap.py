"""bubblewrap's command line: what the processes inside can see, and nothing else."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ...measuring import store

HOST_PROC = "/host-proc"
CGROUP = "/answers-cgroup"
PACKAGE = Path(__file__).resolve().parents[2]
_FILE = Path(__file__).with_name("environment.toml")
_VARIABLES = msgspec.toml.decode(_FILE.read_bytes(), type=dict[str, dict[str, str]])

# Inside, a .venv that is a link has no name but its own.
_PYTHON = str(Path(sys.prefix).resolve() / os.path.relpath(sys.executable, sys.prefix))

# All but one of control groups: processes could not be moved to a group outside that.
NAMESPACES = ("user", "ipc", "pid", "net", "uts")
_PATH = os.pathsep.join([os.path.dirname(_PYTHON), "/usr/local/bin", "/usr/bin", "/bin"])
_SYSTEM_FOLDERS = ("/bin", "/lib", "/lib32", "/lib64", "/sbin")
_SYSTEM_FILES = ("ld.so.cache", "passwd", "group", "fonts", "localtime", "alternatives")
_FOLDERS = dict.fromkeys(
    str(Path(folder).resolve()) for folder in ("/usr", sys.prefix, sys.base_prefix, sys.exec_prefix, PACKAGE)
)
TEMPORARY = "/scratch" if any(Path(folder).is_relative_to("/tmp") for folder in _FOLDERS) else "/tmp"


def data_folder() -> Path | None:
    """The course's data folder, which exercises may read."""
    data = PACKAGE.parent / "data"
    return data if data.is_dir() else None


def command(program: str, cgroup: Path | None = None, *, nested: bool = True) -> list[str]:
    """The command that runs Python inside, with what follows it; no network.

    The fork server can put processes into ``cgroup``, and each submission into namespaces of its own, if
    ``nested``: then the processes of this machine are in sight there, until a submission's own cover them.
    """
    data, cache = data_folder(), store.folder()
    cache.mkdir(parents=True, exist_ok=True)
    more = ["--ro-bind", str(cache), "/cache/autograder"]
    if nested:
        # The kernel allows namespaces their own /proc only where a whole one is in sight.
        more += ["--bind", "/proc", HOST_PROC]
    if cgroup:
        more += ["--bind", str(cgroup), CGROUP]
    if data:
        more += ["--ro-bind", str(data), "/data"]
    group = CGROUP if cgroup else ""
    private = [TEMPORARY, "/dev/shm", HOST_PROC, *([group] if group else [])]
    inside = environment(private, "/data" if data else "", "/cache", namespaces=nested, cgroup=group)
    return walls(program, NAMESPACES, inside, more)


def walls(
    program: str, namespaces: Sequence[str], variables: Mapping[str, str], more: list[str]
) -> list[str]:
    """The command that runs Python, with what follows it, where there is torch and this package, read-only,
    an empty folder for temporary files, these ``variables``, and ``more``.
    """
    line = [program, *(f"--unshare-{kind}" for kind in namespaces)]
    # Not root in there, not even by name: the kernel refuses namespaces to a root without rights.
    line += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000"]
    line.append("--clearenv")
    for name, value in variables.items():
        line += ["--setenv", name, value]
    line += ["--proc", "/proc"] if "pid" in namespaces else ["--ro-bind", "/proc", "/proc"]
    line += ["--tmpfs", "/tmp", "--dev", "/dev", "--tmpfs", TEMPORARY]
    for folder in _SYSTEM_FOLDERS:
        if os.path.islink(folder):
            line += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            line += ["--ro-bind", folder, folder]
    for folder in sorted(_FOLDERS, key=len):
        line += ["--ro-bind", folder, folder]
    for name in _SYSTEM_FILES:
        line += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    line += [*more, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", TEMPORARY]
    if TEMPORARY != "/tmp":
        line += ["--remount-ro", "/tmp"]
    return [*line, "--", _PYTHON]


def environment(
    private: list[str], data: str, cache: str, *, namespaces: bool, cgroup: str = ""
) -> dict[str, str]:
    """The environment of the fork server and all that come from it.

    The first of the ``private`` folders is their home; ``namespaces``: submissions are to have their own;
    ``cgroup``: the folder of the control group for processes that run answers.
    """
    compiles = any(os.path.exists(f"{folder}/g++") for folder in _PATH.split(os.pathsep))
    fixed = _VARIABLES["always"] | _VARIABLES["compiler" if compiles else "no_compiler"]
    return fixed | {
        "PATH": _PATH,
        "PYTHONPATH": str(PACKAGE.parent),
        **dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR"), private[0]),
        "XDG_CACHE_HOME": cache,
        "AUTOGRADER_PRIVATE": ":".join(private),
        "AUTOGRADER_DATA": data,
        "AUTOGRADER_NAMESPACES": "yes" if namespaces else "",
        "AUTOGRADER_CGROUP": cgroup,
    }
