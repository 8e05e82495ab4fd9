"""JupyterLab as `make lab` starts it, for tests. As a program, for a test that cuts the network off:

python lab_server.py FOLDER PAGE …    start it in FOLDER, get the pages and stop it
"""

import re
import socket
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import programs
from programs import PATIENCE


@contextmanager
def running_lab(course: Path, home: Path, python: str | None = sys.executable, **more) -> Iterator[str]:
    """Run `make lab` in ``course``; gives the address that it prints, with its token.

    It runs as on a second time in the environment of ``python``; without one it installs its own. Settings,
    caches and everything else that belongs to a user are in ``home``.
    """
    if python:
        mark_installed(course, python)
    log = home / "lab.log"

    def address() -> str | None:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/lab\S*token=\w+(?=\s)", log.read_text())
        # It prints the address a moment before it listens there.
        return found[0] if found and listens(int(found[1])) else None

    make = ["make", "lab", *([f"PYTHON={python}"] if python else []), "ARGS=--port=0"]
    with programs.running(log, address, *make, cwd=course, env=environment(home), **more) as found:
        yield found


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


def main(folder: str, *pages: str) -> None:
    """Start JupyterLab in a folder and print how many letters each page has."""
    with tempfile.TemporaryDirectory() as home, running_lab(Path(folder), Path(home), python=None) as address:
        for page in pages:
            print(page, len(get(address, page)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
