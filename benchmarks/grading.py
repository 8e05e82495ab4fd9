"""How fast a class is graded, against plain nbgrader on the same machine, and what memory it takes.

The class hands in chapter 01, in the mixture of right, slow, wrong and missing answers of the rehearsal.
Three parts: without the races, by plain ``nbgrader autograde`` and by ``python -m autograder grade``, which
must give the same points; with the races; and a class of 300, whose memory is watched. How often verdicts are
wrong is in ``judge.py``.

    python benchmarks/grading.py           # about 15 minutes; leave the machine alone
    python benchmarks/grading.py --quick   # a small class, to see that it works
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from statistics import median

import nbformat
import psutil
from nbformat import NotebookNode
from tqdm import tqdm

from autograder.authoring.answers import answers_to, submission
from autograder.authoring.builder import build
from autograder.authoring.rehearsal import mix
from autograder.authoring.scratch_course import ScratchCourse
from autograder.measuring.device import provenance
from autograder.roles import is_test

ROOT = Path(__file__).resolve().parents[1]
ASSIGNMENT = "01_tensor_creation"
PLAIN = '''"""nbgrader as it comes, for the same course."""

c = get_config()  # noqa: F821
c.CourseDirectory.root = {folder!r}
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.Execute.timeout = 60
c.ClearSolutions.code_stub = {{"python": "raise NotImplementedError"}}
'''
EVERY = 0.5  # seconds between two looks at the memory, which take time themselves


def course(folder: Path, students: int, *, races: bool) -> ScratchCourse:
    """A class that has handed in, in a course of its own."""
    made = ScratchCourse(folder, ROOT)
    source = build(ROOT / "solutions" / ASSIGNMENT / f"{ASSIGNMENT}.py")
    if not races:
        source.cells = [cell for cell in source.cells if not (is_test(cell) and "race(" in cell.source)]
    place = made.folder / "solutions" / ASSIGNMENT
    place.mkdir(parents=True)
    nbformat.write(source, place / f"{ASSIGNMENT}.ipynb")
    made.nbgrader("generate_assignment", ASSIGNMENT)
    released, answers = made.released(ASSIGNMENT), answers_to(ASSIGNMENT, ROOT)
    for number in range(students):
        hand_in(made, f"student{number:03}", submission(released, answers, mix(answers, number)))
    return made


def hand_in(made: ScratchCourse, student: str, notebook: NotebookNode) -> None:
    folder = made.folder / "submitted" / student / ASSIGNMENT
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{ASSIGNMENT}.ipynb")


@contextmanager
def memory_of(samples: list[dict[str, float]]) -> Iterator[None]:
    """Look at the memory of everything that this process started, while the block runs.

    Each sample has megabytes, shared pages divided among those who share them: "warm" (the processes from
    which the others are forked), "run" (what was forked from them), and "rest" (the command and its workers).
    """
    over = threading.Event()

    def look() -> None:
        while not over.wait(EVERY):
            sample = dict.fromkeys(("warm", "run", "rest"), 0.0)
            warm: set[int] = set()
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    name = process.cmdline()
                    kind = "rest"
                    if "autograder.sandbox.forkserver" in name and "bwrap" not in name[0]:
                        kind = "run" if process.ppid() in warm else "warm"
                        warm.add(process.pid)
                    sample[kind] += process.memory_full_info().pss / 1e6
            samples.append(sample)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def timed(command: list[str], folder: Path) -> float:
    """Seconds that a command takes. Raises CalledProcessError with its output where it fails."""
    start = time.perf_counter()
    environment = {**os.environ, "JUPYTER_CONFIG_DIR": str(folder / "jupyter")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-3000:], file=sys.stderr)
        done.check_returncode()
    return time.perf_counter() - start


def ours(made: ScratchCourse) -> float:
    """Grade with the course's own command: seconds."""
    return timed([sys.executable, "-m", "autograder", "grade", ASSIGNMENT], made.folder)


def plain(made: ScratchCourse, folder: Path) -> tuple[float, dict]:
    """Grade a copy of the class with nbgrader as it comes: seconds, and the points."""
    shutil.copytree(made.folder, folder)
    (folder / "nbgrader_config.py").write_text(PLAIN.format(folder=str(folder)))
    seconds = timed([sys.executable, "-m", "nbgrader", "autograde", ASSIGNMENT], folder)
    return seconds, ScratchCourse(folder).points(ASSIGNMENT)


def above(samples: list[dict[str, float]]) -> float:
    """The most memory, in megabytes, that was used beside the warm processes and the idle command."""
    idle = min(sample["rest"] for sample in samples if sample["warm"])
    return max(sample["run"] + sample["rest"] - idle for sample in samples if sample["warm"])


def growth(samples: list[dict[str, float]]) -> float:
    """Megabytes by which everything together grew from the second quarter of the run to the last."""
    totals = [sum(sample.values()) for sample in samples]
    quarter = len(totals) // 4
    return median(totals[-quarter:]) - median(totals[quarter : 2 * quarter])


def spent_on_races(made: ScratchCourse) -> float:
    """Seconds that the races of all students took, as the autograded notebooks say."""
    pages = made.folder.glob(f"autograded/*/{ASSIGNMENT}/*.ipynb")
    return sum(json.loads(page.read_text())["metadata"]["autograder"]["seconds"]["races"] for page in pages)


def measure(class_size: int, racing: int, large: int, scratch: Path) -> dict:
    """All parts, in this order: ours, plain, with races, a large class."""
    bar = tqdm(total=4, desc="grading classes", unit="class")
    made = course(scratch / "ours", class_size, races=False)
    untouched = shutil.copytree(made.folder, scratch / "untouched")
    seconds = ours(made)
    bar.update()
    plain_seconds, plain_points = plain(ScratchCourse(untouched), scratch / "plain")
    bar.update()
    table = {
        "submissions": class_size,
        "seconds": round(seconds, 1),
        "a_minute": round(60 * class_size / seconds, 1),
        "plain_seconds": round(plain_seconds, 1),
        "plain_a_minute": round(60 * class_size / plain_seconds, 1),
        "times": round(plain_seconds / seconds, 1),
        "same_points": made.points(ASSIGNMENT) == plain_points,
    }
    raced = course(scratch / "raced", racing, races=True)
    seconds = ours(raced)
    bar.update()
    spent = spent_on_races(raced)
    races = {
        "submissions": racing,
        "seconds": round(seconds, 1),
        "seconds_of_races": round(spent, 1),
        "times_the_races": round(seconds / spent, 2),
    }
    crowd = course(scratch / "crowd", large, races=False)
    samples: list[dict[str, float]] = []
    with memory_of(samples):
        seconds = ours(crowd)
    bar.update()
    bar.close()
    graded = crowd.points(ASSIGNMENT)
    many = {
        "submissions": large,
        "seconds": round(seconds, 1),
        "a_minute": round(60 * large / seconds, 1),
        "graded": sum(None not in points.values() for points in graded.values()),
        "megabytes_in_all": round(max(sum(sample.values()) for sample in samples)),
        "megabytes_above_warm": round(above(samples)),
        "megabytes_grown": round(growth(samples)),
    }
    return {
        "machine": provenance("cpu"),
        "cores": len(os.sched_getaffinity(0)),
        "date": date.today().isoformat(),
        "without_races": table,
        "with_races": races,
        "large_class": many,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small class, to see that it works")
    parser.add_argument("--output", type=Path, default=ROOT / "data" / "grading.json")
    options = parser.parse_args()
    sizes = (4, 2, 8) if options.quick else (60, 10, 300)
    with tempfile.TemporaryDirectory(prefix="grading-") as scratch:
        table = measure(*sizes, Path(scratch))
    options.output.write_text(json.dumps(table, indent=1) + "\n")
    print(json.dumps(table, indent=1))
    print(f"Written to {options.output}.")


if __name__ == "__main__":
    main()
