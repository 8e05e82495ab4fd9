"""How long the README's commands take, and the disk they need: data/times.json, and all pages that say so.

In a fresh clone in a folder of its own, from nothing; with nothing else to do for the machine, an hour:

    python benchmarks/times.py                     # all
    python benchmarks/times.py check test --here   # some, in this folder, where it is installed already
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "data" / "times.json"
# What is measured, and the most that it may be, in seconds (disk: gigabytes).
MOST = {"install": 300.0, "disk": 7.0, "lab": 20.0, "check": 60.0, "test": 600.0, "test-all": 1500.0}
# Where it is said. The test of this benchmark holds these sentences, and a new measurement writes them anew.
SAID = {
    "README.md": ["Installing takes {install} and {disk} of disk."],
    "docs/start.md": [
        "installs PyTorch and JupyterLab: {install} on a fast connection, and on Linux {disk} of\ndisk",
        "The next `make lab` takes {lab}, `make test` {test}.",
    ],
    "AGENTS.md": [
        "`make check` takes {check}: style, types, imports, fast tests.",
        "`make test` takes {test}: slow",
    ],
    "CONTRIBUTING.md": [
        "`make check` takes {check} on two cores, `make test` {test}.",
    ],
}


def words(figures: dict[str, float]) -> dict[str, str]:
    """The figures as they stand in a sentence."""
    return {name: _gigabytes(it) if name == "disk" else _duration(it) for name, it in figures.items()}


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{max(5, 5 * round(seconds / 5))} seconds"
    return f"{round(seconds / 60)} minutes"


def _gigabytes(number: float) -> str:
    return f"{number:.0f} GB"


def rewritten(page: str, text: str, said: dict[str, str]) -> str:
    """A page with these words in its sentences. Raises ValueError where one of the sentences is not there."""
    for sentence in SAID[page]:
        pattern = re.sub(r"\\{[\w\\-]+\\}", "[^.,:;]+?", re.escape(sentence))
        text, number = re.subn(pattern, sentence.format(**said), text)
        if number != 1:
            raise ValueError(f"{page} says {number} times: {sentence}")
    return text


def make(folder: Path, *arguments: str) -> float:
    """Seconds that a make command takes; it must succeed."""
    start = time.perf_counter()
    subprocess.run(["make", *arguments], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - start


def lab(folder: Path) -> float:
    """Seconds until JupyterLab prints its address."""
    start = time.perf_counter()
    server = subprocess.Popen(
        ["make", "lab"], cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert server.stderr is not None
    try:
        for line in server.stderr:
            if "http://" in line and "token=" in line:
                return time.perf_counter() - start
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()
    sys.exit("make lab printed no address.")


def measured(name: str, folder: Path) -> float:
    if name == "install":
        return make(folder, ".venv/ready")
    if name == "disk":
        done = subprocess.run(["du", "-sk", ".venv"], cwd=folder, check=True, capture_output=True, text=True)
        return int(done.stdout.split()[0]) * 1024 / 1e9
    return lab(folder) if name == "lab" else make(folder, name)


def main() -> None:
    """Measure, write the file and the pages; exits with 1 where something takes longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MOST)} (default: all)")
    parser.add_argument("--here", action="store_true", help="in this folder, as it is")
    options = parser.parse_args()
    if unknown := set(options.names) - MOST.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    figures = json.loads(FILE.read_text())["figures"] if FILE.exists() else {}
    clone = ROOT if options.here else Path(tempfile.mkdtemp(prefix="clone-")) / "course"
    if not options.here:
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    try:
        for name in MOST:
            if name in (options.names or MOST):
                figures[name] = round(measured(name, clone), 1)
                print(f"{name}: {figures[name]:g}, at most {MOST[name]:g}", flush=True)
    finally:
        if not options.here:
            shutil.rmtree(clone.parent)
    said = words(figures)
    content = {"date": date.today().isoformat(), "cores": os.cpu_count(), "figures": figures, "words": said}
    FILE.write_text(json.dumps(content, indent=1) + "\n")
    for page in SAID:
        path = ROOT / page
        path.write_text(rewritten(page, path.read_text("utf-8"), said), "utf-8")
    sys.exit(any(figures[name] > MOST[name] for name in options.names or MOST))


if __name__ == "__main__":
    main()
