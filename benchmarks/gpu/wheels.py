"""``make gpu-wheels``: what a machine with torch lacks to run notebooks, as wheels in one folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from autograder.authoring.sources import find_root
from autograder.command_line import CommandError, reported
from autograder.measuring.units import size

# What the runner, the kernels and the judge on a device import, beside what such a machine has: torch,
# torchvision and matplotlib. pip adds what these need.
NEEDED = ("ipykernel", "jupytext", "msgspec", "nbclient", "nbformat", "platformdirs")
PYTHON = "3.12"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
MOST_BYTES = 40e6


def collect(folder: Path) -> None:
    """Put them into a folder. Raises CommandError where pip cannot, or where they have become too many."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", scratch, *NEEDED]
        command += ["--constraint", str(find_root() / "constraints.txt"), "--python-version", PYTHON]
        command += ["--implementation", "cp", "--only-binary=:all:"]
        command += [f"--platform={name}" for name in PLATFORMS]
        if subprocess.run(command, check=False).returncode:
            raise CommandError("pip could not collect the wheels, for the reason above.")
        wheels = list(Path(scratch).iterdir())
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for path in wheels:
            shutil.move(path, folder)
    total = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{folder}: {len(wheels)} wheels for Python {PYTHON} on Linux, {size(total)}")
    if total > MOST_BYTES:
        raise CommandError(f"more than {size(int(MOST_BYTES))}")


if __name__ == "__main__":
    sys.exit(reported(lambda: collect(Path(sys.argv[1]))))
