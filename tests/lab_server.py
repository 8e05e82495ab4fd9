"""JupyterLab as `make lab` starts it, for tests. As a program, for a test that cuts the network off:

python lab_server.py FOLDER PAGE …    start it in FOLDER, get the pages and stop it
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import programs

# A guard against a hang, not an expectation.
PATIENCE = 300


@contextmanager
def running_lab(
    course: Path, home: Path, python: str | None = sys.executable, patience: float = PATIENCE
) -> Iterator[str]:
    """Run `make lab` in ``course``; gives the address that it prints, with its token.

    It runs as on a second time in the environment of ``python``; without one it installs its own. Settings,
    caches and everything else that belongs to a user are in ``home``.
    """
    if python:
        mark_installed(course, python)
    log = home / "lab.log"
    with log.open("w") as stream:
        server = subprocess.Popen(
            ["make", "lab", *([f"PYTHON={python}"] if python else []), "ARGS=--port=0"],
            cwd=course,
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        found = None
        end = time.monotonic() + patience
        # It prints the address a moment before it listens there.
        while not (found and listens(int(found[1]))):
            assert server.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.1)
            found = re.search(r"http://127\.0\.0\.1:(\d+)/lab\S*token=\w+(?=\s)", log.read_text())
        yield found[0]
    finally:
        stop(server)


def environment(home: Path) -> dict[str, str]:
    """This process's environment for a user who has just come, and who has no display."""
    env = programs.environment(HOME=str(home))
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "XDG_CACHE_HOME", "TMPDIR"):
        (home / name).mkdir(exist_ok=True)
        env[name] = str(home / name)
    return env


def listens(port: int) -> bool:
    """Whether something answers at this port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
    except ConnectionRefusedError:
        return False
    return True


def get(address: str, page: str) -> str:
    """A page of this JupyterLab. Raises HTTPError where there is none."""
    parts = re.fullmatch(r"(http://[^/]+)/.*(\?token=\w+)", address)
    assert parts, address
    with urllib.request.urlopen(f"{parts[1]}{page}{parts[2]}", timeout=PATIENCE) as answer:
        return answer.read().decode()


def mark_installed(course: Path, python: str = sys.executable) -> None:
    """Tell the Makefile in ``course`` that nothing is to be installed into the environment of ``python``."""
    (course / f".ready{python.replace('/', '-').replace(' ', '-')}").touch()


def stop(server: subprocess.Popen) -> None:
    """End a server with all that it started."""
    os.killpg(server.pid, signal.SIGTERM)
    server.wait(PATIENCE)
    try:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            os.killpg(server.pid, 0)  # raises when nobody is left
            time.sleep(0.1)
        os.killpg(server.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def main(folder: str, *pages: str) -> None:
    """Start JupyterLab in a folder and print how many letters each page has."""
    with tempfile.TemporaryDirectory() as home, running_lab(Path(folder), Path(home), python=None) as address:
        for page in pages:
            print(page, len(get(address, page)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
