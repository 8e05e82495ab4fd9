"""How fast a class is graded, against plain nbgrader on the same machine, and what memory it takes.

The class hands in chapter 01, in the mixture of right, slow, wrong and missing answers of the rehearsal.
Four parts: without the races, by plain ``nbgrader autograde`` and by ``python -m autograder grade``, which
must give the same points; with the races, where each time left that it announced is compared with the time it
then took; a class of 300, whose memory is watched; and ``python -m autograder watch`` while students hand in,
at random, as many as 300 in an hour. How often verdicts are wrong is in ``judge.py``.

    python benchmarks/grading.py                 # an hour; leave the machine alone
    python benchmarks/grading.py without_races   # one part of it
    python benchmarks/grading.py --quick         # small classes, to see that it works
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

import nbformat
import psutil
from nbformat import NotebookNode
from tqdm import tqdm

from autograder.authoring.answers import answers_to, submission
from autograder.authoring.builder import build
from autograder.authoring.scratch_course import ScratchCourse, mix
from autograder.extras.watch.queue_file import QUEUE, Place, read_queue
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
A_HOUR = 300  # students who hand in while the watcher grades


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
                    if "autograder.sandbox.submissions.fork_server" in name and "bwrap" not in name[0]:
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


def timed(command: list[str], made: ScratchCourse) -> float:
    """Seconds that a command takes. Raises CalledProcessError with its output where it fails."""
    start = time.perf_counter()
    environment = {**os.environ, **made.environment}
    done = subprocess.run(command, cwd=made.folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-3000:], file=sys.stderr)
        done.check_returncode()
    return time.perf_counter() - start


def ours(made: ScratchCourse) -> float:
    """Grade with the course's own command: seconds."""
    return timed([sys.executable, "-m", "autograder", "grade", ASSIGNMENT], made)


def plain(made: ScratchCourse, folder: Path) -> tuple[float, dict]:
    """Grade a copy of the class with nbgrader as it comes: seconds, and the points."""
    shutil.copytree(made.folder, folder)
    (folder / "nbgrader_config.py").write_text(PLAIN.format(folder=str(folder)))
    copy = ScratchCourse(folder)
    seconds = timed([sys.executable, "-m", "nbgrader", "autograde", ASSIGNMENT], copy)
    return seconds, copy.points(ASSIGNMENT)


def above(samples: list[dict[str, float]]) -> float:
    """The most memory, in megabytes, that was used beside the warm processes and the idle command."""
    idle = min(sample["rest"] for sample in samples if sample["warm"])
    return max(sample["run"] + sample["rest"] - idle for sample in samples if sample["warm"])


def growth(samples: list[dict[str, float]]) -> float:
    """Megabytes by which everything together grew from the second quarter of the run to the last."""
    totals = [sum(sample.values()) for sample in samples]
    quarter = len(totals) // 4
    return median(totals[-quarter:]) - median(totals[quarter : 2 * quarter])


def announced(made: ScratchCourse) -> tuple[float, list[list[float]]]:
    """Grade as ``ours``: seconds; and for each time left that it announced, the share of the run that was
    over then, and what it said over what was true.
    """
    start, said = time.perf_counter(), []
    with subprocess.Popen(
        [sys.executable, "-m", "autograder", "grade", ASSIGNMENT],
        cwd=made.folder,
        env={**os.environ, **made.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        for line in process.stderr:
            if found := re.search(r"about ([\d.]+) (s|min|h) left", line):
                seconds = float(found[1]) * {"s": 1, "min": 60, "h": 3600}[found[2]]
                said.append((time.perf_counter() - start, seconds))
    total = time.perf_counter() - start
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return total, [[round(at / total, 2), round(seconds / (total - at), 2)] for at, seconds in said]


def send(made: ScratchCourse, student: str, notebook: NotebookNode) -> None:
    """Hand in through the exchange, as ``nbgrader submit`` does."""
    stamp = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S.%f %Z}"
    whole = made.folder / f"{student}+{ASSIGNMENT}+{stamp}+{student}"
    whole.mkdir()
    nbformat.write(notebook, whole / f"{ASSIGNMENT}.ipynb")
    (whole / "timestamp.txt").write_text(stamp)
    (whole / "submission_secret.txt").write_text(student)
    whole.chmod(0o777)  # nbgrader's sign that nothing is to come
    whole.rename(made.folder / "exchange/fast-pytorch/inbound" / whole.name)


def graded(made: ScratchCourse) -> list[Place]:
    """Those whom the watcher has done with."""
    queue = read_queue(made.folder / QUEUE)
    return [place for place in queue.places if place.ended] if queue else []


def watched(students: int, scratch: Path) -> dict:
    """Students hand in at random, and a watcher grades and hands back: seconds from one to the other."""
    made = course(scratch / "watched", 0, races=True)
    released, answers = made.released(ASSIGNMENT), answers_to(ASSIGNMENT, ROOT)
    (made.folder / "exchange/fast-pytorch/inbound").mkdir(parents=True)
    moments = random.Random(19)
    environment = {**os.environ, **made.environment}
    command = [sys.executable, "-m", "autograder", "watch", "--release"]
    with (
        (made.folder / "watch.log").open("w") as log,
        subprocess.Popen(command, cwd=made.folder, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            for number in tqdm(range(students), desc="handing in", unit="student", leave=False):
                time.sleep(moments.expovariate(A_HOUR / 3600))
                send(made, f"student{number:03}", submission(released, answers, mix(answers, number)))
            while len(graded(made)) < students and process.poll() is None:
                time.sleep(EVERY)
        finally:
            process.send_signal(signal.SIGINT)
    places = graded(made)
    seconds = [
        (datetime.fromisoformat(place.ended) - datetime.fromisoformat(place.arrived)).total_seconds()
        for place in places
        if place.ended
    ]
    return {
        "an_hour": A_HOUR,
        "submissions": students,
        "graded": sum(place.stage == "graded" for place in places),
        "handed_back": sum(place.handed_back for place in places),
        "median_s": round(median(seconds), 1),
        "longest_s": round(max(seconds), 1),
    }


def spent_on_races(made: ScratchCourse) -> float:
    """Seconds that the races of all students took, as the autograded notebooks say."""
    pages = made.folder.glob(f"autograded/*/{ASSIGNMENT}/*.ipynb")
    return sum(json.loads(page.read_text())["metadata"]["autograder"]["seconds"]["races"] for page in pages)


def without_races(students: int, scratch: Path) -> dict:
    """Ours, then plain nbgrader, on the same class."""
    made = course(scratch / "ours", students, races=False)
    untouched = shutil.copytree(made.folder, scratch / "untouched")
    seconds = ours(made)
    plain_seconds, plain_points = plain(ScratchCourse(untouched), scratch / "plain")
    return {
        "submissions": students,
        "seconds": round(seconds, 1),
        "a_minute": round(60 * students / seconds, 1),
        "plain_seconds": round(plain_seconds, 1),
        "plain_a_minute": round(60 * students / plain_seconds, 1),
        "times": round(plain_seconds / seconds, 1),
        "same_points": made.points(ASSIGNMENT) == plain_points,
    }


def with_races(students: int, scratch: Path) -> dict:
    raced = course(scratch / "raced", students, races=True)
    seconds, estimates = announced(raced)
    spent = spent_on_races(raced)
    return {
        "submissions": students,
        "seconds": round(seconds, 1),
        "seconds_of_races": round(spent, 1),
        "times_the_races": round(seconds / spent, 2),
        "seconds_each": round(seconds / students, 2),
        "time_left_announced": estimates,
    }


def large_class(students: int, scratch: Path) -> dict:
    crowd = course(scratch / "crowd", students, races=False)
    samples: list[dict[str, float]] = []
    with memory_of(samples):
        seconds = ours(crowd)
    points = crowd.points(ASSIGNMENT)
    return {
        "submissions": students,
        "seconds": round(seconds, 1),
        "a_minute": round(60 * students / seconds, 1),
        "graded": sum(None not in points_of_one.values() for points_of_one in points.values()),
        "megabytes_in_all": round(max(sum(sample.values()) for sample in samples)),
        "megabytes_above_warm": round(above(samples)),
        "megabytes_grown": round(growth(samples)),
    }


# Each part with its students, and how many they are for a look.
PARTS = {
    "without_races": (without_races, 120, 4),
    "with_races": (with_races, 300, 2),
    "large_class": (large_class, 300, 8),
    "watched": (watched, 60, 3),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="a small class, to see that it works")
    parser.add_argument("--output", type=Path, help="default: data/grading.json, or with --quick in build")
    options = parser.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    output = options.output or ROOT / ("build" if options.quick else "data") / "grading.json"
    output.parent.mkdir(exist_ok=True)
    table = json.loads(output.read_text()) if output.exists() else {}
    for name in tqdm(options.parts or PARTS, desc="grading classes", unit="class"):
        measure, students, few = PARTS[name]
        with tempfile.TemporaryDirectory(prefix="grading-") as scratch:
            table[name] = measure(few if options.quick else students, Path(scratch))
        table[name]["machine"] = provenance("cpu")
        output.write_text(json.dumps(table, indent=1) + "\n")
    print(json.dumps(table, indent=1))
    print(f"Written to {output}.")


if __name__ == "__main__":
    main()
