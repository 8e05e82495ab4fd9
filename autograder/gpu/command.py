"""``make gpu``: all that waits for a GPU, in one call and within minutes, on a machine without a network.

The steps, in this order; each goes on after a failure, and whatever a step finds is on the disk at once:

- branches: every chapter and every solution runs once with calls that are not repeated, to find what breaks;
- recordings: the chapters' timings, those first whose claims need a GPU;
- ratios: every race's reference solution against the given version, and its share of the device's limit;
- limits: the measured limits beside the maker's data sheet;
- judge: verdicts on races of known ratio, alone on the device and beside another process;
- apart: the same, of the judge outside the answer's process.

Another call with the same folder does what is missing, and once more what failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..authoring.builder import BuildError, chapter_sources, find_root, solution_sources
from ..files import write_whole
from ..measuring.clocks import present
from ..measuring.device import provenance
from . import report, speed_judge
from .device_judge import isolation
from .limits import compare_with_sheet

STEPS = ("branches", "recordings", "ratios", "limits", "judge", "apart")
MINUTES = 20.0
# Of all the time, what has passed at most when a step ends: the last ones need minutes, too.
ENDS = {"branches": 0.2, "recordings": 0.6, "ratios": 0.75, "limits": 0.8, "judge": 0.9, "apart": 1.0}
# Claims of these need a GPU; the others follow by number.
FIRST = ("05", "04", "07", "02", "06", "12", "08", "14", "15", "17", "18", "19")
PAGES = ("claims", "index")
AT_ONCE = 8
# Of each judge: how it comes to a verdict, and how many races at each ratio.
JUDGES = {"judge": (speed_judge.word_in_notebook, 10), "apart": (speed_judge.word_apart, 3)}


@dataclass(frozen=True)
class Run:
    """One call: where things are, what is measured, and until when (a time of ``time.monotonic``)."""

    root: Path
    out: Path
    device: str
    start: float
    seconds: float

    def left(self, step: str) -> float:
        """Seconds that are left for a step."""
        return self.start + ENDS[step] * self.seconds - time.monotonic()

    def kept(self, name: str) -> dict[str, Any]:
        """What an earlier call, or this one, has found in a step."""
        path = self.out / f"{name}.json"
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return found

    def missing(self, name: str, items: list[Path]) -> list[Path]:
        """Those notebooks that a step still has to run: what failed comes after what was never run."""
        kept = self.kept(name)
        failed = {item: found["errors"] for item, found in kept.items()}
        todo = [path for path in items if failed.get(_name(self, path), True)]
        return sorted(todo, key=lambda path: _name(self, path) in kept)

    def keep(self, name: str, item: str, found: object) -> None:
        """Put what was found for one item beside the others, and write the report anew."""
        content = json.dumps(self.kept(name) | {item: found}, indent=1)
        write_whole(self.out / f"{name}.json", content + "\n")
        write_whole(
            self.out / "report.md", report.report({step: self.kept(step) for step in STEPS}, self.device)
        )


def main(argv: list[str] | None = None) -> int:
    """Do the steps; 0 where everything was done and nothing failed, else 1."""
    options = _parser().parse_args(argv)
    try:
        root = find_root()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.device not in present():
        print(f"error: there is no {options.device} device here.", file=sys.stderr)
        return 1
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"error: {options.out} cannot be made: {error}", file=sys.stderr)
        return 1
    run = Run(root, options.out.resolve(), options.device, time.monotonic(), 60 * options.minutes)
    facts = provenance(run.device)
    print(
        f"{facts['name']}, torch {facts['torch']}: at most {options.minutes:g} minutes, into {run.out}",
        flush=True,
    )
    whole = True
    for step in options.only:
        print(f"\n{step}", flush=True)
        whole &= DO[step](run)
    print(f"\n{run.out / 'report.md'} tells what was found.")
    if not whole:
        print("Not everything was done, or some of it failed. The same call again does that.")
    return 0 if whole else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m autograder gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder for what is found")
    parser.add_argument("--minutes", type=_minutes, default=MINUTES, help=f"at most (default: {MINUTES:g})")
    parser.add_argument(
        "--only", type=_steps, default=STEPS, metavar="STEP,…", help=f"of {', '.join(STEPS)} (default: all)"
    )
    parser.add_argument(
        "--device",
        choices=("cuda", "cpu"),
        default="cuda",
        help="cpu: a rehearsal, with the CPU in its place",
    )
    return parser


def _minutes(text: str) -> float:
    minutes = float(text)
    if not 0 < minutes < float("inf"):
        raise argparse.ArgumentTypeError("a number above 0 is needed")
    return minutes


def _steps(text: str) -> list[str]:
    asked = text.split(",")
    if unknown := [step for step in asked if step not in STEPS]:
        raise argparse.ArgumentTypeError(f"no step is called {unknown[0]!r}; there are {', '.join(STEPS)}")
    return [step for step in STEPS if step in asked]


def _scripts(root: Path) -> list[Path]:
    """The chapters, those first that need a GPU most."""
    found = [path for path in chapter_sources(root) if path.stem not in PAGES]
    order = {number: place for place, number in enumerate(FIRST)}
    return sorted(found, key=lambda path: (order.get(path.stem[:2], len(FIRST)), path.stem))


def _branches(run: Run) -> bool:
    """Chapters and solutions, several at once: nothing is timed."""
    scripts = _scripts(run.root) + solution_sources(run.root)
    whole = True
    with ThreadPoolExecutor(AT_ONCE) as several:
        answers = several.map(
            lambda path: (path, _in_kernel(run, path, "branches", AUTOGRADER_SECONDS="0")),
            run.missing("branches", scripts),
        )
        for path, found in answers:
            whole &= _told(run, "branches", _name(run, path), found)
    return whole


def _recordings(run: Run) -> bool:
    def one(path: Path) -> dict[str, Any] | None:
        return _in_kernel(run, path, "recordings", AUTOGRADER_RECORD=str(run.out / "timings"))

    (run.out / "timings").mkdir(exist_ok=True)
    return _one_by_one(run, "recordings", _scripts(run.root), one)


def _ratios(run: Run) -> bool:
    return _one_by_one(
        run, "ratios", solution_sources(run.root), lambda path: _in_kernel(run, path, "ratios")
    )


def _one_by_one(
    run: Run, step: str, scripts: list[Path], do: Callable[[Path], dict[str, Any] | None]
) -> bool:
    """What is timed has the machine for itself."""
    whole = True
    for path in run.missing(step, scripts):
        whole &= _told(run, step, _name(run, path), do(path))
    return whole


def _limits(run: Run) -> bool:
    if run.device in run.kept("limits"):
        return True
    run.keep("limits", run.device, compare_with_sheet(run.device))
    print("  measured")
    return True


def _judge(run: Run, step: str) -> bool:
    verdict, each = JUDGES[step]
    whole = True
    if step == "apart":
        print(f"  both sides are started with: {' '.join(isolation(run.device)) or 'nothing'}", flush=True)
    for load in speed_judge.LOADS:
        if load in run.kept(step):
            continue
        try:
            found = speed_judge.races(verdict, run.device, each, load, lambda: run.left(step) <= 0)
        except Exception as error:  # whatever breaks here, the other steps go on
            write_whole(run.out / f"{step}-{load}.txt", traceback.format_exc())
            print(f"  {load}: {type(error).__name__}: {error}", flush=True)
            whole = False
            continue
        made = sum(row["races"] for row in found.values())
        print(f"  {load}: {made} races, {sum(row['wrong'] for row in found.values())} wrong", flush=True)
        if made == each * len(found):
            run.keep(step, load, found)
        else:
            whole = False
    return whole


DO: dict[str, Callable[[Run], bool]] = {
    "branches": _branches,
    "recordings": _recordings,
    "ratios": _ratios,
    "limits": _limits,
    "judge": partial(_judge, step="judge"),
    "apart": partial(_judge, step="apart"),
}


def _name(run: Run, path: Path) -> str:
    return path.relative_to(run.root).as_posix()


def _told(run: Run, step: str, name: str, found: dict[str, Any] | None) -> bool:
    """Say and keep what one notebook gave; whether nothing failed. None: there was no time left for it."""
    if found is None:
        print(f"  {name}: no time was left", flush=True)
        return False
    run.keep(step, name, found)
    print(f"  {name}: {found['seconds']:.0f} s, {len(found['errors'])} errors", flush=True)
    for error in found["errors"]:
        print(f"    {error['cell']}: {error['line']}: {error['error'].splitlines()[0][:150]}", flush=True)
    return not found["errors"]


def _in_kernel(run: Run, path: Path, step: str, **settings: str) -> dict[str, Any] | None:
    """What ``kernel.run_script`` finds in a process of its own, and the seconds that took."""
    start, left = time.monotonic(), run.left(step)
    if left <= 0:
        return None
    environment = {**os.environ, **settings}
    if path.parent.name != "course":  # cells of chapters look at what the CPU takes, too
        environment["AUTOGRADER_DEVICES"] = run.device
    # Notebooks run in their own folders.
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(run.root), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "autograder.gpu.kernel", str(path), f"{left:.0f}"]
    try:
        done = subprocess.run(
            command,
            cwd=run.root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=left + 30,
        )
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        found = {"errors": [_failure(f"it took more than {left:.0f} s")], "races": []}
    except (IndexError, ValueError):
        said = done.stderr.strip().splitlines() or ["it ended without a word"]
        found = {"errors": [_failure(said[-1])], "races": []}
    if found["errors"] and run.left(step) <= 0:
        return None  # the time was up: the next call does it again
    return found | {"seconds": round(time.monotonic() - start, 1)}


def _failure(said: str) -> dict[str, str]:
    return {"cell": "", "line": "", "error": said}
