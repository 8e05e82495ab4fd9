"""Students work on Windows and macOS, too: what only Linux has stays in the sandbox, for grading."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.authoring.builder import chapter_sources, solution_sources

ROOT = Path(__file__).resolve().parent.parent
# Python's documentation calls them available on Unix, or on Linux.
NOT_EVERYWHERE = {"crypt", "fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
PACKAGE = [path for path in sorted((ROOT / "autograder").rglob("*.py")) if "sandbox" not in path.parts]
PARTS = sorted((ROOT / "course/parts").glob("*.py"))
SOURCES = [*PACKAGE, *PARTS, *chapter_sources(ROOT), *solution_sources(ROOT)]
READERS = {"open", "read_text", "write_text"}
# Their `open` takes no encoding.
OTHERS = {"Image", "os", "tarfile", "zipfile"}
BINARY = re.compile(r"[rwax+]*b[rwax+]*")


def by_file(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.relative_to(ROOT).as_posix())


def imported(tree: ast.Module) -> set[str]:
    """What a module imports whatever happens: not in a function, nor where it is prepared for an error."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).partition(".")[0])
    return found


def opened_as_they_come(tree: ast.Module) -> Iterator[int]:
    """The lines in which a file is opened as text and no encoding is given."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or any(word.arg == "encoding" for word in call.keywords):
            continue
        function = call.func
        name = getattr(function, "attr", "") or ("open" if getattr(function, "id", "") == "open" else "")
        of = getattr(getattr(function, "value", None), "id", "")
        words = [*call.args, *(word.value for word in call.keywords)]
        modes = [
            word.value for word in words if isinstance(word, ast.Constant) and isinstance(word.value, str)
        ]
        if name in READERS and of not in OTHERS and not any(BINARY.fullmatch(mode) for mode in modes):
            yield call.lineno


def built_with_slashes(tree: ast.Module) -> Iterator[int]:
    """The lines in which something and "/…" are put together to one text, or a text is taken apart there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pairs = list(zip(node.values, node.values[1:], strict=False))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            pairs = [(node.left, node.right)]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in (
            "split",
            "rsplit",
            "partition",
        ):
            pairs = [(node.func, one) for one in node.args[:1]]
        else:
            continue
        for before, after in pairs:
            text = after.value if isinstance(after, ast.Constant) else None
            if not isinstance(before, ast.Constant) and isinstance(text, str) and text.startswith("/"):
                yield node.lineno


# Another system, as far as Python tells of it: what it lacks is gone before the course's package is imported.
# What other packages need of this one, they import before.
ELSEWHERE = """
import asyncio, ctypes, multiprocessing, os, platform, signal, subprocess, sys, time
import IPython.display, matplotlib.figure, matplotlib.backends.backend_agg, numpy, PIL.Image
import torch, torch.utils.benchmark, torchvision, platformdirs

system = {system!r}
sys.platform, name = {{"Windows": ("win32", "AMD64"), "Darwin": ("darwin", "arm64")}}[system]
platform.system, platform.machine, platform.processor = lambda: system, lambda: name, lambda: name
gone = {{os: ["sched_getaffinity", "sched_setaffinity", "memfd_create", "pidfd_open", "O_TMPFILE"]}}
modules = ["spwd", "termios"]
if system == "Windows":
    modules += ["fcntl", "grp", "posix", "pty", "pwd", "resource", "tty"]
    gone[os] += ["fork", "getuid", "geteuid", "getloadavg", "kill", "setsid", "waitpid", "O_NOFOLLOW"]
    gone[signal] = ["SIGALRM", "SIGKILL", "alarm", "setitimer", "pthread_sigmask"]
    gone[time] = ["clock_gettime", "clock_gettime_ns", "pthread_getcpuclockid"]
for module, names in gone.items():
    for one in names:
        if hasattr(module, one):
            delattr(module, one)
sys.modules |= dict.fromkeys(modules)
import builtins, io, pathlib
def open_there(file, *arguments, **more):
    if str(file).startswith(("/proc", "/sys")):
        raise FileNotFoundError(file)
    return io_open(file, *arguments, **more)
io_open, builtins.open, io.open = io.open, open_there, open_there

from autograder import check, compare, costs, race

def slow(x):
    return torch.stack([row * 2 for row in x])

def fast(x):
    return x * 2

def wrong(x):
    return x * 3

def table(generator, device):
    return torch.rand(300, 8, generator=generator).to(device)

compare("doubling", {{"slow": slow, "fast": fast}}, inputs=table, guess=...)
check(fast, like=slow, on=table, points=1)
race(fast, against=slow, on=table, at_least={{"cpu": 1.5}}, points=2)
print(costs(lambda: fast(torch.rand(3, 3))))
check(wrong, like=slow, on=table, points=1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("system", ["Windows", "Darwin"])
def test_a_notebook_works_on_another_system(system: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE.format(system=system)],
        cwd=ROOT / "course",
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "AUTOGRADER_SECONDS": "0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    name = "AMD64" if system == "Windows" else "arm64"
    assert re.search(rf"here: {name} +slow .*\n +fast ", done.stdout), done.stdout
    assert "passed: right in 2 cases" in done.stdout and "failed: result[0, 0] is " in done.stdout
    assert re.search("as fast as given|this machine is too noisy", done.stdout), done.stdout
    assert "2 operations (aten.rand 1, aten.mul 1)" in done.stdout


# What torch, Jupyter and pytest need of this system, they import before.
COLLECT = """
import sys
import jupyter_server.serverapp, jupytext, nbclient, nbformat, numpy, pytest, torch, torchvision, xdist
from nbgrader.apps import NbGraderApp

class Elsewhere:
    def pytest_sessionstart(self, session):
        sys.platform = {platform!r}
        sys.modules |= dict.fromkeys({modules!r})

sys.exit(pytest.main(["--collect-only", "--quiet", "-p", "no:cacheprovider", "tests"], [Elsewhere()]))
"""


SYSTEMS = [
    ("darwin", ["spwd"]),
    ("win32", ["crypt", "fcntl", "grp", "pwd", "resource", "syslog", "termios", "tty"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("platform", "modules"), SYSTEMS)
def test_the_tests_of_the_course_are_found_on_another_system(platform: str, modules: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECT.format(platform=platform, modules=modules)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "tests/judging/test_check.py::" in done.stdout and "tests/grading/" not in done.stdout


COMMAND = """
import sys
import dask, distributed, jupyter_server.serverapp, nbclient, psutil, torch, torchvision
from nbgrader.apps import NbGraderApp

sys.platform = {platform!r}
sys.modules |= dict.fromkeys({modules!r})

from autograder.__main__ import main

sys.exit(main({command!r}))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("platform", "modules"), SYSTEMS)
@pytest.mark.parametrize("command", ["grade", "watch", "again", "gpu"])
def test_what_needs_linux_says_so_in_a_sentence(platform: str, modules: list[str], command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMMAND.format(platform=platform, modules=modules, command=[command])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: grading needs Linux; on Windows, WSL is one.\n"


@by_file(SOURCES)
def test_nothing_imports_what_only_some_systems_have(path: Path) -> None:
    assert not imported(ast.parse(path.read_text(encoding="utf-8"))) & NOT_EVERYWHERE


@by_file(SOURCES)
def test_texts_are_read_and_written_in_a_named_encoding(path: Path) -> None:
    assert list(opened_as_they_come(ast.parse(path.read_text(encoding="utf-8")))) == []


# How often, and what it is there.
NO_PATHS = {
    "autograder/authoring/builder.py": (1, "what people read"),
    "autograder/authoring/bundle.py": (2, "names in an archive"),
    "autograder/authoring/links.py": (1, "an address in a network"),
    "autograder/measuring/countdown.py": (2, "Linux's own files"),
    "autograder/teaching/course_map.py": (1, "a link in a notebook"),
}


@by_file(SOURCES)
def test_paths_are_not_built_as_text(path: Path) -> None:
    found = set(built_with_slashes(ast.parse(path.read_text(encoding="utf-8"))))
    number, _ = NO_PATHS.get(path.relative_to(ROOT).as_posix(), (0, ""))
    assert len(found) == number, sorted(found)
