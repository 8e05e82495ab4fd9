"""``make gpu`` on a rented machine, rehearsed: it has few packages, and each command is killed at its limit.

A command starts in a folder with what git tracks and what is carried, and only what lies in its folder
``OUT`` comes back: at most 8 files of 16 MiB.
"""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from known_work import CHAPTER, EXERCISES
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from programs import PATIENCE, environment, git, run
from repository import COURSE, ROOT, SOLUTIONS, copy_files
from wheels import NEEDED

from autograder.files import write_whole

# What such a machine has; what these need is there, too.
THERE = ("jinja2", "matplotlib", "numpy", "pillow", "pip", "psutil", "setuptools", "torch", "torchvision")
THERE += ("tqdm", "triton")
HIDING = """
import sys
from importlib.machinery import PathFinder

class OnlySome(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else super().find_spec(name, path, target)

sys.meta_path = [OnlySome if finder is PathFinder else finder for finder in sys.meta_path]
"""
OTHERS = (":!course", ":!exercises", ":!solutions")  # in their place is a small course
STEPS = ("smoke", "limits", "branches", "recordings", "ratios", "others", "judge")
SCRIPTS = {
    "course/05_twice.py": CHAPTER,
    "course/01_more.py": CHAPTER.replace("two ways", "more"),
    "solutions/01_twice/01_twice.py": EXERCISES,
}


def with_what_they_need(names: tuple[str, ...]) -> set[str]:
    """The distributions of these names and all that they require here."""
    found: set[str] = set()
    queue = list(names)
    while queue:
        name = canonicalize_name(queue.pop())
        if name in found:
            continue
        found.add(name)
        try:
            needs = [Requirement(line) for line in requires(name) or ()]
        except PackageNotFoundError:
            continue
        queue += [one.name for one in needs if not one.marker or one.marker.evaluate({"extra": ""})]
    return found


def hidden(names: tuple[str, ...]) -> set[str]:
    """The modules that are installed here, and not where there are only these distributions."""
    known = with_what_they_need(names) | {"autograder"}
    return {
        module
        for module, owners in packages_distributions().items()
        if not known & set(map(canonicalize_name, owners))
    }


@pytest.fixture
def rented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[tuple[str, ...]], None]:
    """Hide from all processes what a machine with these distributions lacks."""

    def hide(names: tuple[str, ...]) -> None:
        (tmp_path / "hiding").mkdir(exist_ok=True)
        code = f"HIDDEN = {sorted(hidden(names))!r}\n{HIDING}"
        (tmp_path / "hiding" / "sitecustomize.py").write_text(code, encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{tmp_path / 'hiding'}")

    return hide


def test_what_notebooks_import_is_there() -> None:
    missing = hidden((*NEEDED, *THERE))
    assert {"nbgrader", "hypothesis", "dask", "jupyterlab"} <= missing
    for path in [*COURSE, *SOLUTIONS, *(ROOT / "course" / "parts").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not missing & {name.partition(".")[0] for name in names}, f"{path.name}:{node.lineno}"


@pytest.mark.slow  # processes that load torch
def test_nothing_is_imported_that_such_a_machine_lacks(rented) -> None:
    rented((*NEEDED, *THERE))
    done = run(sys.executable, "benchmarks/gpu/smoke.py", "packages", "cpu", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    # A package that was forgotten hinders its step alone, and is told.
    rented(THERE)
    done = run(sys.executable, "benchmarks/gpu/gpu_run.py", "--help", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    done = run(sys.executable, "benchmarks/gpu/smoke.py", "packages", "cpu", cwd=ROOT)
    said = done.stderr.splitlines()[-1]
    assert done.returncode and "No module named 'nbclient'" in said and "No module named 'msgspec'" in said


def kept(archive: Path) -> dict[tuple[str, str], dict]:
    """What an archive holds, by step and item."""
    if not archive.exists():
        return {}
    with tarfile.open(archive) as tar:
        files = {
            Path(name).stem: json.load(tar.extractfile(name))
            for name in tar.getnames()
            if Path(name).stem in STEPS and name.endswith(".json")
        }
    return {(step, item): found for step, items in files.items() for item, found in items.items()}


@pytest.fixture
def command(tmp_path: Path, rented) -> Callable:
    """One command on a fresh machine, killed once what it found is ``enough``; gives its code and archive."""
    rented((*NEEDED, *THERE))

    def call(number: int, carried: Path | None, enough: Callable[[dict], bool]) -> tuple[int, Path]:
        machine, out = tmp_path / f"machine {number}", tmp_path / f"out {number}"
        copy_files(machine, git(ROOT, "ls-files", "-z", "--", ".", *OTHERS).split("\0")[:-1])
        for name, text in SCRIPTS.items():
            write_whole(machine / name, text)
        out.mkdir()
        if carried:
            (machine / "build").mkdir()
            shutil.copy(carried, machine / "build" / "gpu.tar.gz")
        words = f"--device cpu --only {','.join(STEPS)}"
        own = {"PYTHONPATH": str(tmp_path / "hiding"), "XDG_CACHE_HOME": str(machine / "cache")}
        there = {"cwd": machine, "env": environment(AUTOGRADER_SECONDS="0.1", **own)}
        make = ["make", "gpu", f"OUT={out}", f"PYTHON={sys.executable}", f"ARGS={words}"]
        with subprocess.Popen(make, start_new_session=True, **there) as process:
            end = time.monotonic() + PATIENCE
            while process.poll() is None and not enough(kept(out / "gpu.tar.gz")):
                assert time.monotonic() < end
                time.sleep(0.2)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        back = list(out.iterdir())
        assert len(back) <= 8 and max(path.stat().st_size for path in back) <= 16 << 20
        assert all(re.fullmatch(r"[\w.-]+", path.name, re.ASCII) for path in back)
        return process.returncode, out / "gpu.tar.gz"

    return call


@pytest.mark.slow
def test_after_three_commands_everything_is_there_once(command) -> None:
    carried, before, codes = None, {}, []
    for number, last in enumerate(("branches", "ratios", "nothing")):
        code, carried = command(
            number, carried, lambda found, last=last: any(step == last for step, _ in found)
        )
        codes.append(code)
        after = kept(carried)
        assert len(after) > len(before)
        # What an earlier command has handed over is not done again: the times that it took are the same.
        assert [one for one in before if one[0] != "smoke" and after[one] != before[one]] == []
        before = after
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0]
    assert [sum(step == name for step, _ in after) for name in STEPS] == [5, 1, 3, 1, 1, 1, 40]
    assert {item for step, item in after if step == "branches"} == set(SCRIPTS)
    assert not [found for (step, _), found in after.items() if step != "smoke" and found["errors"]]
    with tarfile.open(carried) as tar:
        (record,) = (name for name in tar.getnames() if re.search("/timings/.*json$", name))
        content = json.load(tar.extractfile(record))
    assert sorted(content["timings"]) == ["more", "two ways"]
