"""Students work on Windows and macOS, too: what only Linux has stays in the sandbox, for grading.

What may be imported there, ruff holds (TID253 in pyproject.toml).
"""

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import python
from repository import COURSE, ROOT, SOLUTIONS

READERS = {"open", "read_text", "write_text"}
SPLITTERS = {"split", "rsplit", "partition"}
# Their `open` takes no encoding.
OTHERS = {"Image", "os", "tarfile", "zipfile"}
BINARY = re.compile(r"[rwax+]*b[rwax+]*")


def opened_as_they_come(tree: ast.Module) -> Iterator[int]:
    """The lines in which a file is opened as text and no encoding is given."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or any(word.arg == "encoding" for word in call.keywords):
            continue
        function = call.func
        name = getattr(function, "attr", "") or ("open" if getattr(function, "id", "") == "open" else "")
        of = getattr(getattr(function, "value", None), "id", "")
        words = [*call.args, *(word.value for word in call.keywords)]
        modes = [str(word.value) for word in words if isinstance(word, ast.Constant)]
        if name in READERS and of not in OTHERS and not any(BINARY.fullmatch(mode) for mode in modes):
            yield call.lineno


def built_with_slashes(tree: ast.Module) -> Iterator[int]:
    """The lines in which something and "/…" are put together to one text, or a text is taken apart there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pairs = list(zip(node.values, node.values[1:], strict=False))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            pairs = [(node.left, node.right)]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in SPLITTERS:
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
@pytest.mark.parametrize(("system", "name"), [("Windows", "AMD64"), ("Darwin", "arm64")])
def test_a_notebook_works_on_another_system(system: str, name: str, tmp_path: Path) -> None:
    there = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "AUTOGRADER_SECONDS": "0.1"}
    done = python(ELSEWHERE.format(system=system), cwd=ROOT / "course", env=there)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"here: {name} +slow .*\n +fast ", done.stdout), done.stdout
    assert "passed: right in 2 cases" in done.stdout and "failed: result[0, 0] is " in done.stdout
    assert re.search("as fast as given|this machine is too noisy", done.stdout), done.stdout
    assert "2 operations (aten.rand 1, aten.mul 1)" in done.stdout


# What torch, Jupyter and pytest need of this system, they import before.
BECOMES = """
import sys
import dask, distributed, jupyter_server.serverapp, jupytext, nbclient, nbformat, numpy, psutil, pytest
import torch, torchvision, xdist
from nbgrader.apps import NbGraderApp

def become():
    sys.platform = {platform!r}
    sys.modules |= dict.fromkeys({modules!r})
"""
COLLECT = """
class Elsewhere:
    def pytest_sessionstart(self, session):
        become()

sys.exit(pytest.main(["--collect-only", "--quiet", "-p", "no:cacheprovider", "tests"], [Elsewhere()]))
"""
COMMANDS = """
become()
from autograder.__main__ import main

assert [main([command]) for command in ("grade", "watch", "again")] == [1] * 3
"""
SYSTEMS = [
    ("darwin", ["spwd"]),
    ("win32", ["crypt", "fcntl", "grp", "pwd", "resource", "syslog", "termios", "tty"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("platform", "modules"), SYSTEMS)
def test_tests_are_found_on_another_system_and_grading_says_what_it_needs(platform, modules) -> None:
    becomes = BECOMES.format(platform=platform, modules=modules)
    found = python(becomes + COLLECT, cwd=ROOT)
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr
    assert "tests/judging/test_check.py::" in found.stdout and "tests/grading/" not in found.stdout
    refused = python(becomes + COMMANDS, cwd=ROOT)
    assert (refused.returncode, refused.stdout) == (0, "")
    assert refused.stderr == 3 * "error: grading needs Linux; on Windows, WSL is one.\n"


# How often, and what it is there.
NO_PATHS = {
    "autograder/authoring/builder.py": (1, "what people read"),
    "autograder/authoring/bundle.py": (2, "names in an archive"),
    "autograder/authoring/links.py": (1, "an address in a network"),
    "autograder/measuring/countdown.py": (2, "Linux's own files"),
    "autograder/teaching/course_map.py": (1, "a link in a notebook"),
}


def test_files_are_opened_in_a_named_encoding_and_paths_are_not_built_as_text() -> None:
    package = [path for path in (ROOT / "autograder").rglob("*.py") if "sandbox" not in path.parts]
    unnamed, built = [], Counter[str]()
    for path in [*package, *(ROOT / "course/parts").glob("*.py"), *COURSE, *SOLUTIONS]:
        name, tree = path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))
        unnamed += [f"{name}:{line}" for line in opened_as_they_come(tree)]
        built[name] += len(set(built_with_slashes(tree)))
    assert len(built) > 100
    assert unnamed == []
    assert +built == {name: number for name, (number, _) in NO_PATHS.items()}
