"""Environments with other versions than constraints.txt: those of Colab, and the oldest that are allowed."""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from filelock import FileLock
from nbclient import NotebookClient
from programs import PATIENCE, run
from repository import ROOT

COLAB = ROOT / "environments" / "colab.txt"
# Name -> Python, files that say what is installed, and how pip is called.
PROJECT = ROOT / "pyproject.toml"
OLDEST = ["--resolution", "lowest-direct", "--requirement", str(PROJECT), "ipykernel>=6.17.1"]
VERSIONS = {"colab": ("3.13", [COLAB], ["--requirement", str(COLAB)]), "oldest": ("3.10", [PROJECT], OLDEST)}


def execute(notebook: nbformat.NotebookNode, python: Path, folder: Path, kernels: Path, env: dict) -> None:
    """Run a notebook in a folder with another Python; where its kernel is, is written below ``kernels``."""
    words = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
    (kernels / "python3").mkdir(parents=True, exist_ok=True)
    kernel = {"argv": words, "display_name": "another", "language": "python"}
    (kernels / "python3/kernel.json").write_text(json.dumps(kernel))
    place = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=PATIENCE, startup_timeout=PATIENCE, resources=place)
    client.create_kernel_manager().kernel_spec_manager.kernel_dirs = [str(kernels)]
    client.execute(env=env)


def python_with(name: str) -> Path:
    """The Python of an environment of ``VERSIONS``, in build/versions: installed at the first call.

    Skips the test where it cannot be installed, and says why.
    """
    version, files, arguments = VERSIONS[name]
    base = _interpreter(version)
    told = hashlib.sha256(repr([str(base), arguments, *(path.read_text() for path in files)]).encode())
    folder = ROOT / "build" / "versions" / name
    python, done = folder / "bin" / "python", folder / "installed"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):  # only one of the test processes installs
        if done.is_file() and done.read_text() == told.hexdigest():
            return python
        uv = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        if uv is None:
            pytest.skip("uv is needed, to install other versions")
        shutil.rmtree(folder, ignore_errors=True)
        make = ["venv", "--quiet", "--python", base, folder]
        for command in (make, ["pip", "install", "--quiet", "--python", python, *arguments]):
            made = run(uv, *command)
            if made.returncode:
                shutil.rmtree(folder, ignore_errors=True)
                reason = made.stderr.strip().splitlines()[-1:]
                pytest.skip(f"the versions of {name!r} cannot be installed here: {reason}")
        done.write_text(told.hexdigest())
    return python


def _interpreter(version: str) -> Path:
    """This Python version where it is to be had, and otherwise the one that runs the tests."""
    name = f"python{version}"
    found = shutil.which(name)
    # pyenv has a program for each version it keeps, which works where that one is chosen.
    kept = sorted(Path(found).parents[1].glob(f"versions/{version}.*/bin/{name}")) if found else []
    for path in [*kept, *([Path(found)] if found else []), Path(sys.executable)]:
        if not run(path, "-c", "").returncode:
            return path
    raise AssertionError("the Python that runs this does not run")
