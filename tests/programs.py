"""Programs that tests start, and what these say."""

import os
import subprocess
import sys
from pathlib import Path

PATIENCE = 600  # seconds: a guard against a hang, not an expectation


def run(*command: object, **options) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with nothing to read; its status and what it printed."""
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False, **options)


def environment(**more: str) -> dict[str, str]:
    """This process's variables, without a display and without what tells make and pip what to do."""
    told = ("DISPLAY", "WAYLAND_DISPLAY", "MAKE", "MFLAGS", "PIP")
    return {key: value for key, value in os.environ.items() if not key.startswith(told)} | more


def python(code: str, *arguments: object, **options) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own."""
    return run(sys.executable, "-c", code, *arguments, **options)


def git(folder: Path, *arguments: str) -> str:
    """What git says of a repository. It belongs to Ada."""
    done = run("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(folder: Path) -> None:
    """Make a folder a repository, with all its files in one commit."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "The course")
