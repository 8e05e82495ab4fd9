"""Students work on Windows and macOS, too: what only Linux has stays in the sandbox, for grading.

What may be imported there, and that text files have an encoding, ruff holds (TID253 and PLW1514 in
pyproject.toml).
"""

import os
import re

import pytest
from programs import python
from repository import ROOT

# Another system, as far as Python tells of it: what it lacks is gone before the course's package is imported.
# What other packages need of this one, they import before.
ELSEWHERE = """
import asyncio, ctypes, multiprocessing, os, platform, signal, subprocess, sys, time
import dask, distributed, jupyter_server.serverapp, jupytext, nbformat, nbgrader.apps, psutil
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

slow = lambda x: torch.stack([row * 2 for row in x])
fast = lambda x: x * 2
wrong = lambda x: x * 3
table = lambda generator, device: torch.rand(300, 8, generator=generator).to(device)

compare("doubling", {{"slow": slow, "fast": fast}}, inputs=table, guess=...)
check(fast, like=slow, on=table, points=1)
race(fast, against=slow, on=table, at_least={{"cpu": 1.5}}, points=2)
print(costs(lambda: fast(torch.rand(3, 3))))
check(wrong, like=slow, on=table, points=1)

from autograder.__main__ import main

for command in (["grade", "any"], ["watch"], ["again", "any", "--student", "ada", "--exercise", "any"]):
    assert main(command) == 1
"""


@pytest.mark.slow
@pytest.mark.parametrize(("system", "name"), [("Windows", "AMD64"), ("Darwin", "Apple")])
def test_on_another_system_a_notebook_works_and_grading_says_what_it_needs(system, name, tmp_path) -> None:
    there = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "AUTOGRADER_SECONDS": "0.1"}
    done = python(ELSEWHERE.format(system=system), cwd=ROOT / "course", env=there)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"here: {name} +slow .*\n +fast ", done.stdout), done.stdout
    assert "passed: right in 2 cases" in done.stdout and "failed: result[0, 0] is " in done.stdout
    assert re.search("as fast as given|this machine is too noisy", done.stdout), done.stdout
    assert "2 operations (aten.rand 1, aten.mul 1)" in done.stdout
    assert done.stderr.endswith(3 * "error: grading needs Linux; on Windows, WSL is one.\n")
