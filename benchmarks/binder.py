"""What Binder gives its readers, one core and 2 GB: does every chapter run there, and how long until the
first picture is seen? Writes data/binder.json.

A chapter runs from top to bottom in a kernel of its own, in a control group with that much memory and no
swap, on one core; one that needs more is killed there. Where no such group can be made, nothing is measured:
on Linux, root can, and others under ``systemd-run --user --scope -p Delegate=yes``.

    python benchmarks/binder.py        # ten minutes
    python benchmarks/binder.py 03     # one; the others' figures stay
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from autograder.authoring import builder
from autograder.measuring.device import provenance
from autograder.sandbox.walls import memory_cgroup

ROOT = Path(__file__).resolve().parents[1]
MEMORY = 2 * 1000**3
# Runs a notebook, and prints the seconds until the first picture and until the end.
RUN = """
import json, sys, time
import nbformat
from nbclient import NotebookClient

start, first = time.monotonic(), []
def look(cell, **_):
    data = [output.get("data", {}) for output in cell.get("outputs", ())]
    if any("image/png" in one or "<img" in one.get("text/html", "") for one in data):
        first.append(time.monotonic() - start)
path, folder = sys.argv[1:]
notebook = nbformat.read(path, as_version=4)
about = {"metadata": {"path": folder}}
NotebookClient(notebook, timeout=600, resources=about, on_cell_executed=look).execute()
print(json.dumps([first[0] if first else None, time.monotonic() - start]))
"""


@dataclass(frozen=True)
class Group:
    """A control group with a bound on memory: its folder, and the names of its files."""

    folder: Path
    processes: str
    statistics: str
    own_memory: str

    def used(self) -> int:
        """Bytes that its processes have for themselves; what the system keeps of files is not counted."""
        lines = (self.folder / self.statistics).read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.split()[0] == self.own_memory))


@contextmanager
def limited() -> Iterator[Group]:
    """A new group with ``MEMORY``. Raises SystemExit where none can be made."""
    name = f"binder-{os.getpid()}"
    try:
        if parent := memory_cgroup.delegated():
            group = Group(memory_cgroup.make(parent, name), "cgroup.procs", "memory.stat", "anon")
            limits = {"memory.max": MEMORY, "memory.swap.max": 0}
        else:
            own = next(
                line.split(":")[2]
                for line in Path("/proc/self/cgroup").read_text().splitlines()
                if line.split(":")[1] == "memory"
            )
            folder = Path("/sys/fs/cgroup/memory") / own.lstrip("/") / name
            folder.mkdir()
            group = Group(folder, "cgroup.procs", "memory.stat", "total_rss")
            limits = {"memory.limit_in_bytes": MEMORY, "memory.memsw.limit_in_bytes": MEMORY}
        for file, value in limits.items():
            with suppress(FileNotFoundError):  # a kernel without a bound on swap
                (group.folder / file).write_text(str(value))
    except (OSError, StopIteration) as error:
        raise SystemExit(
            f"error: no control group with a bound on memory can be made here ({error})."
        ) from None
    try:
        yield group
    finally:
        for _ in range(50):  # the last processes may be ending
            with suppress(OSError):
                group.folder.rmdir()
                break
            time.sleep(0.1)


def chapter_in(group: Group, notebook: Path) -> dict[str, Any]:
    """Run a chapter in the group, on one core. Raises SystemExit where it does not run to its end."""
    core = min(os.sched_getaffinity(0))

    def enter() -> None:
        (group.folder / group.processes).write_text("0")
        os.sched_setaffinity(0, {core})

    command = [sys.executable, "-c", RUN, str(notebook), str(notebook.parent)]
    peak, over = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.05):
            peak = max(peak, group.used())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        done = subprocess.run(command, preexec_fn=enter, capture_output=True, text=True, check=False)
    finally:
        over.set()
        watcher.join()
    if done.returncode:
        raise SystemExit(f"{notebook.name} does not run in {MEMORY / 1e9:g} GB:\n{done.stderr[-2000:]}")
    first, seconds = json.loads(done.stdout.splitlines()[-1])
    return {
        "first_picture_s": first and round(first, 1),
        "seconds": round(seconds, 1),
        "peak_bytes": peak,
        "machine": provenance("cpu"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="01, 02, …; all without any")
    parser.add_argument("--output", type=Path, default=ROOT / "data" / "binder.json")
    options = parser.parse_args()
    sources = [
        source
        for source in builder.chapter_sources(ROOT)
        if source.stem[0].isdigit() and (not options.chapters or source.stem[:2] in options.chapters)
    ]
    found = {}
    if options.chapters and options.output.exists():
        found = json.loads(options.output.read_text(encoding="utf-8"))["chapters"]
    for source in tqdm(sources, unit="chapter"):
        with limited() as group:
            found[source.stem] = chapter_in(group, source.with_suffix(".ipynb"))
        tqdm.write(f"{source.stem}: {found[source.stem]}")
        content = {"cores": 1, "memory_bytes": MEMORY, "chapters": dict(sorted(found.items()))}
        options.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"Written to {options.output}.")


if __name__ == "__main__":
    main()
