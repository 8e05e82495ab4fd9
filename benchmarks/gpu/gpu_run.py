"""``make gpu``: all that waits for a GPU, on a machine without a network that is lent for minutes.

The steps, in this order; each goes on after a failure:

- smoke: what does not work here, within a minute;
- limits: the measured limits beside the maker's data sheet, before anything else uses the device;
- branches: every chapter and every solution runs once with calls that are not repeated, to find what breaks;
- recordings: the timings of the chapters whose claims need a GPU most;
- ratios: every race's reference solution against the given version, and its share of the device's limit;
- others: the timings of the other chapters;
- judge: verdicts on races of known ratio, alone on the device (judge-busy: beside another process);
- apart: the same of the judge outside the answer's process (apart-busy).

What an item gives (a notebook, a race) is kept at once, by the device's name, in build/gpu, and all of that
is written anew into one archive. Another call does what is missing, and then once more what failed; on a
fresh machine it takes up the archive build/gpu.tar.gz.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import report
import smoke
import speed_judge
import torch

from autograder.authoring.sources import BuildError, chapter_sources, find_root, solution_sources
from autograder.command_line import reported
from autograder.files import file_name, write_whole
from autograder.measuring.device import provenance

STEPS = (
    "smoke",
    "limits",
    "branches",
    "recordings",
    "ratios",
    "others",
    "judge",
    "judge-busy",
    "apart",
    "apart-busy",
)
MINUTES = 9.0  # a command of ten minutes starts and ends, too
MOST_SECONDS = 240.0  # of an item: one that hangs must not cost a whole call, and the next one again
FIRST = ("05", "04", "18", "15", "19", "02", "17")  # chapters of the step recordings
ORDER = {**{number: place for place, number in enumerate((*FIRST, "07"))}, "08": 98, "13": 99}
PAGES = ("claims", "index")
# Notebooks that run at once: nothing is timed in the first two steps, in the others one waits for another.
AT_ONCE = {"smoke": len(smoke.CHECKS), "branches": 8, "recordings": 3, "ratios": 3, "others": 3}
# Of each judge: how it comes to a verdict, and how many races at each ratio.
JUDGES = {"judge": (speed_judge.word_in_notebook, 10), "apart": (speed_judge.word_apart, 3)}
ARCHIVE = "gpu.tar.gz"

Found = dict[str, Any]  # of an item: its ``errors``, the ``seconds`` it took, and what its step looks for


@dataclass(frozen=True)
class Run:
    """One call: where things are, what is measured, and until when (a time of ``time.monotonic``)."""

    root: Path
    out: Path
    device: str
    facts: dict[str, Any]
    end: float

    @property
    def folder(self) -> Path:
        """Where this device's results are kept."""
        return self.root / "build" / "gpu" / file_name(self.facts["name"])

    def left(self) -> float:
        """Seconds that are left."""
        return self.end - time.monotonic()

    def kept(self, step: str) -> dict[str, Found]:
        """What an earlier call, or this one, has found in a step, by item."""
        path = self.folder / f"{step}.json"
        found: dict[str, Found] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return found

    def keep(self, step: str, item: str, found: Found) -> None:
        """Put what was found for one item beside the others, and write the report and the archive anew."""
        content = json.dumps(self.kept(step) | {item: found}, indent=1)
        write_whole(self.folder / f"{step}.json", content + "\n")
        page = report.report({step: self.kept(step) for step in STEPS}, self.facts, self.device)
        write_whole(self.folder / "report.md", page)
        draft = shutil.make_archive(str(self.out / "draft"), "gztar", self.folder.parent)
        os.replace(draft, self.out / ARCHIVE)


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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the steps that are asked for; gives the exit status."""
    parser = argparse.ArgumentParser(prog="make gpu", description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "--out", type=Path, required=True, help=f"the folder for {ARCHIVE}: all that is found"
    )
    parser.add_argument("--minutes", type=_minutes, default=MINUTES, help=f"at most (default: {MINUTES:g})")
    steps = f"of {', '.join(STEPS)} (default: all)"
    parser.add_argument("--only", type=_steps, default=STEPS, metavar="STEP,…", help=steps)
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="cpu: a rehearsal on the CPU"
    )
    asked = parser.parse_args(argv)
    return reported(lambda: measure(**vars(asked)))


def measure(out: Path, minutes: float, only: Sequence[str], device: str) -> int:
    """All steps, on a device; 0 where nothing is left to do, else 1. Raises BuildError without the device."""
    root = find_root()
    # Whether it works, the smoke test says: a kernel here would keep some of its memory until the end.
    if device == "cuda" and not torch.cuda.is_available():
        raise BuildError(f"there is no {device} device here.")
    out.mkdir(parents=True, exist_ok=True)
    _take_up(root / "build")
    facts, end = _facts(device), time.monotonic() + 60 * minutes
    run = Run(root, out.resolve(), device, facts, end)
    print(f"{facts['name']}, torch {facts['torch']}: at most {minutes:g} minutes, into {run.out}")
    missing = [(step, _items(run, step, [None])) for step in only]
    failed = [(step, _items(run, step, [True])) for step in only if step != "smoke"]
    for step, items in missing + failed:
        if items and run.left() > 0:
            print(f"\n{step}", flush=True)
            try:
                _do(run, step, items)
            except Exception:  # the other steps go on
                traceback.print_exc()
    return _told_what_is_left(run, only)


def _take_up(build: Path) -> None:
    """Go on from the archive of an earlier call, unless its folder is still here and knows more.

    Raises BuildError for an archive that is damaged.
    """
    if (build / ARCHIVE).is_file() and not (build / "gpu").exists():
        shutil.rmtree(build / "gpu-draft", ignore_errors=True)
        try:
            shutil.unpack_archive(build / ARCHIVE, build / "gpu-draft")
        except Exception as error:  # of tar, of gzip, of zlib, or of the disk
            raise BuildError(f"{build / ARCHIVE} cannot be taken up: {error}") from None
        (build / "gpu-draft").rename(build / "gpu")


def _facts(device: str) -> dict[str, Any]:
    """What is to be known of the device; where it cannot be asked, the smoke test says why."""
    try:
        return provenance(device)
    except Exception:
        traceback.print_exc()
        return {"name": device, "torch": "?"}


def _all_items(run: Run, step: str) -> list[str]:
    """The names of what a step does, those of most value first."""
    judge = step.removesuffix("-busy")
    if judge in JUDGES:
        races = range(JUDGES[judge][1])
        return [f"{ratio:g} race {race}" for race in races for ratio in speed_judge.RATIOS]
    if step in ("smoke", "limits"):
        return list(smoke.CHECKS) if step == "smoke" else ["rates"]
    chapters = [path for path in chapter_sources(run.root) if path.stem not in PAGES]
    chapters.sort(key=lambda path: (ORDER.get(path.stem[:2], len(ORDER)), path.stem))
    solutions = solution_sources(run.root)
    paths = {
        "branches": chapters + solutions,
        "recordings": [path for path in chapters if path.stem.startswith(FIRST)],
        "ratios": solutions,
        "others": [path for path in chapters if not path.stem.startswith(FIRST)],
    }
    return [path.relative_to(run.root).as_posix() for path in paths[step]]


def _items(run: Run, step: str, failed: list[bool | None]) -> list[str]:
    """Those items of a step of which is ``failed``: None, what is missing; True, what failed."""
    ended = {item: bool(found["errors"]) for item, found in run.kept(step).items()}
    return [item for item in _all_items(run, step) if ended.get(item) in failed]


def _do(run: Run, step: str, items: list[str]) -> None:
    """Do these items of a step, and keep what each gives. What is timed has the device for itself."""
    with ExitStack() as stack:
        if step.endswith("-busy"):
            stack.enter_context(speed_judge.beside(run.device))
        several = stack.enter_context(ThreadPoolExecutor(AT_ONCE.get(step, 1)))
        answers = (several.map if step in AT_ONCE else map)(partial(_one, run, step), items)
        for item, found in zip(items, answers, strict=True):
            if found is None:
                print(f"  {item}: no time was left", flush=True)
                continue
            run.keep(step, item, found)
            word = "failed" if found["errors"] else found.get("word", "done")
            print(f"  {item}: {found['seconds']:.1f} s, {word}", flush=True)
            for error in found["errors"]:
                lines = (part.strip().split("\n")[0][:200] for part in error.values())
                print(f"    {': '.join(filter(None, lines))}", flush=True)


def _one(run: Run, step: str, item: str) -> Found | None:
    """What one item gives; None where there was no time for it."""
    start, most = time.monotonic(), min(MOST_SECONDS, run.left())
    if most <= 0:
        return None
    judge = step.removesuffix("-busy")
    try:
        if judge in JUDGES:
            found = speed_judge.one_race(JUDGES[judge][0], run.device, float(item.split()[0]))
        elif step == "smoke":
            found = _in_process(run, smoke.SECONDS, "smoke", item, run.device)
            for error in found["errors"]:
                error["line"] = f"this hinders {smoke.CHECKS[item][1]}"
        elif step == "limits":
            found = _in_process(run, most, "data_sheets", run.device)
        else:
            words = str(run.root / item), f"{most:.0f}"  # the second of a cell: so it is told which
            found = _in_process(run, most + 10, "kernel", *words, **_settings(run, step, item))
            undecided = found.pop("undecided", [])
            found["errors"] += undecided if step == "ratios" else []
    except Exception as error:  # the rest goes on
        traceback.print_exc()
        found = _failed(f"{type(error).__name__}: {error}")
    if found["errors"] and run.left() <= 0:
        return None  # the next call does it again
    return found | {"seconds": round(time.monotonic() - start, 1)}


def _settings(run: Run, step: str, item: str) -> dict[str, str]:
    """The environment variables of a notebook."""
    if step == "branches":  # what is measured beside others must not be kept where the other steps find it
        settings = {"AUTOGRADER_SECONDS": "0", "XDG_CACHE_HOME": str(run.root / "build" / "gpu-branches")}
    else:
        settings = {"AUTOGRADER_ALONE": str(run.root), "OMP_NUM_THREADS": "4"}
    if step in ("recordings", "others"):
        settings["AUTOGRADER_RECORD"] = str(run.folder / "timings")
        if run.device != "cpu":
            settings["AUTOGRADER_SECONDS"] = "cpu=0"
    if not item.startswith("course/"):  # cells of chapters look at what the CPU takes, too
        settings["AUTOGRADER_DEVICES"] = run.device
    return settings


def _in_process(run: Run, seconds: float, module: str, *words: str, **settings: str) -> Found:
    """The JSON that a module beside this one prints, in a process of its own for ``seconds`` at most."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(run.folder / "cache"), **settings}
    # Notebooks run in their own folders.
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(run.root), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, str(Path(__file__).with_name(f"{module}.py")), *words]
    try:
        done = subprocess.run(
            command,
            cwd=run.root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
        found: Found = json.loads(done.stdout.splitlines()[-1])
        return found
    except subprocess.TimeoutExpired:
        return _failed(f"it took more than {seconds:.0f} s")
    except (IndexError, ValueError):
        said = done.stderr.strip().splitlines() or ["it ended without a word"]
        return _failed(said[-1])


def _failed(said: str) -> Found:
    return {"errors": [{"cell": "", "line": "", "error": said}], "races": []}


def _told_what_is_left(run: Run, steps: Sequence[str]) -> int:
    """Say what a further call would do; 0 where that is nothing, else 1."""
    print(f"\n{run.out / ARCHIVE} has all that was found; its report.md tells it.")
    left = [
        f"{step}: {len(items)} {word}: {', '.join(items)}"
        for step in steps
        if step != "smoke"
        for word, failed in (("missing", None), ("failed", True))
        if (items := _items(run, step, [failed]))
    ]
    if left:
        print("The same call again does what is left:", *left, sep="\n  ")
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main())
