"""Make one archive from which `make lab` works without a network: notebooks, data, package and wheels."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from importlib.metadata import distributions, version
from pathlib import Path

from ..command_line import CommandError, command

MADE_FOR = "made-for.txt"
ROOT = Path(__file__).resolve().parents[2]
# What a student needs, of the files that git tracks: no solutions, no tests.
CONTENTS = (
    ".ci/ready_for_lab.py",
    ".ci/keep_torch.py",
    ".jupyter",
    "LICENSE",
    "LICENSE-text",
    "Makefile",
    "README.md",
    "autograder",
    "constraints.txt",
    "course",
    "data",
    "docs/*.png",
    "docs/screens",
    "exercises",
    "nbgrader_config.py",
    "pyproject.toml",
)


class BundleError(CommandError):
    """A bundle that cannot be made. The message says why."""


@command("bundle", "Make one archive for this Python and this platform, in build/.")
def main() -> None:
    bundle = make_bundle(ROOT)
    print(f"{bundle.relative_to(ROOT)}: {_size(bundle.stat().st_size)}, for {this_python()}")


def make_bundle(root: Path) -> Path:
    """Download the wheels and pack them with the course's files; gives the archive's path.

    Raises BundleError where the disk is too small, git knows no files or pip fails.
    """
    files = course_files(root)
    build = root / "build"
    build.mkdir(exist_ok=True)
    require_space(build)
    with tempfile.TemporaryDirectory(prefix="bundle-", dir=build) as folder:
        wheels = download_wheels(root, Path(folder))
        fits = made_for(path.name for path in wheels.iterdir())
        (wheels / MADE_FOR).write_text(f"{fits}\n", encoding="utf-8")
        tag = "-".join([_python(), platform.system(), platform.machine()]).lower()
        name = f"fast-pytorch-{version('autograder')}-py{tag}"
        inside = {f"{name}/{path}": root / path for path in files}
        inside |= {f"{name}/wheels/{path.name}": path for path in sorted(wheels.iterdir())}
        unfinished = Path(folder) / "bundle.tar"
        pack(inside, unfinished)
        return unfinished.replace(build / f"{name}.tar")


def course_files(root: Path, contents: Iterable[str] = CONTENTS) -> list[str]:
    """The files of an archive, as paths below `root`. Raises BundleError outside a git checkout."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", *contents], cwd=root, capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        raise BundleError("git was not found; it tells which files belong to the course.") from None
    except subprocess.CalledProcessError as error:
        raise BundleError(f"git does not tell which files belong to the course: {error.stderr}") from None
    return [path for path in listed.stdout.split("\0") if path and (root / path).is_file()]


def require_space(folder: Path) -> None:
    """Raise BundleError where the disk lacks the space to make a bundle in `folder`.

    Wheels take about half of what is installed from them, and for a while they lie there twice: so a little
    more than this environment has installed.
    """
    needed = 1.1 * sum(file.size or 0 for package in distributions() for file in package.files or ())
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise BundleError(
            f"making a bundle takes about {_size(needed)} of disk, and {folder} has {_size(free)} left."
        )


def download_wheels(root: Path, folder: Path) -> Path:
    """The wheels of all that the course needs, in a new folder. Raises BundleError where pip fails."""
    wheels = folder / "wheels"
    command = [sys.executable, "-m", "pip", "download", "--only-binary", ":all:", "--dest", str(wheels)]
    if sys.version_info >= (3, 11):  # as in the Makefile
        command += ["--constraint", "constraints.txt"]
    # The package itself is installed from its files, and setuptools does that.
    command += [".[course]", "setuptools"]
    # pip's own temporary files are as large, and /tmp may be small.
    if subprocess.run(command, cwd=root, env={**os.environ, "TMPDIR": str(folder)}, check=False).returncode:
        raise BundleError("pip could not download the wheels, see above.")
    return wheels


def pack(inside: dict[str, Path], archive: Path) -> None:
    """Write files under their names in the archive; who owns them here stays here."""
    from tqdm import tqdm  # not there yet when a bundle is installed

    def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    total = sum(path.stat().st_size for path in inside.values())
    # Not compressed: wheels are already.
    with (
        tarfile.open(archive, "w") as tar,
        tqdm(desc="packing", total=total, unit="B", unit_scale=True) as progress,
    ):
        for name, path in inside.items():
            tar.add(path, name, filter=anonymous)
            progress.update(path.stat().st_size)


# What the wheels are for.


def this_python() -> str:
    """The Python that runs this, as in "Python 3.11 on Linux x86_64"."""
    return f"Python {_python()} on {platform.system()} {platform.machine()}"


def made_for(wheels: Iterable[str]) -> str:
    """Who can install wheels with these names, as in "Python 3.11 on Linux x86_64, glibc 2.28 or newer"."""
    # One wheel may have several tags (manylinux_2_17_x86_64.manylinux_2_28_x86_64): then any of them will do.
    tags = [re.findall(r"(?:manylinux|macosx)_(\d+)_(\d+)_", wheel) for wheel in wheels]
    needed = [min((int(major), int(minor)) for major, minor in found) for found in tags if found]
    if not needed:
        return this_python()
    return "{}, {} {}.{} or newer".format(this_python(), _system()[0], *max(needed))


def require_fit(file: str) -> None:
    """Leave with a sentence where a bundle's wheels are for another Python or a newer system than this."""
    wanted = Path(file).read_text(encoding="utf-8").strip()
    python, _, system = wanted.partition(", ")
    kind, here = _system()
    least = tuple(map(int, re.findall(r"\d+", system)))
    if python != this_python() or here < least:
        found = f"{kind} {'.'.join(map(str, here))}" if here else f"no {kind}"
        sys.exit(
            f"error: this bundle is for {wanted}, but {sys.executable} is {this_python()}, {found}. "
            "Another Python is used with: make lab BASE=/path/to/python"
        )


def _python() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def _system() -> tuple[str, tuple[int, ...]]:
    """What decides which wheels run here: its name, and its version (nothing where it is unknown)."""
    if platform.system() == "Darwin":
        kind, found = "macOS", platform.mac_ver()[0]
    else:
        library, found = platform.libc_ver()
        kind, found = "glibc", found if library == "glibc" else ""
    return kind, tuple(map(int, re.findall(r"\d+", found)))


def _size(number: float) -> str:
    return f"{number / 1e9:.1f} GB" if number > 1e8 else f"{number / 1e6:.1f} MB"
