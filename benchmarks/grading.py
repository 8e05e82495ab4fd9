"""How fast a class is graded, against plain nbgrader on the same machine, and what memory it takes.

The class hands in chapter 01, in the mixture of right, slow, wrong and missing answers of the rehearsal.
Three parts: without the races, by plain ``nbgrader autograde`` and by ``python -m autograder grade``, which
must give the same points; with the races; and a class of 300, whose memory is watched. And the verdicts of
the races themselves, on answers whose true ratio is known.

    python benchmarks/grading.py           # about 15 minutes; leave the machine alone
    python benchmarks/grading.py --quick   # a small class, to see that it works
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
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
from nbformat import NotebookNode
from tqdm import tqdm

from autograder.authoring.answers import answers_to, submission
from autograder.authoring.builder import build
from autograder.authoring.rehearsal import mix
from autograder.authoring.scratch_course import ScratchCourse
from autograder.judging.outcome import MIME
from autograder.measuring.decide import SignTest
from autograder.measuring.device import provenance
from autograder.roles import is_test
from autograder.sandbox import Sandbox, linux
from autograder.sandbox.timed_race import ERROR, MOST_LAUNCHES

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
            for pid in linux.family(os.getpid())[1:]:
                with suppress(OSError):
                    name = Path(f"/proc/{pid}/cmdline").read_bytes()
                    parent = int(linux.status(pid).get("PPid", 0))
                    kind = "rest"
                    if b"isolated.warm" in name and not name.startswith(b"/usr/bin/bwrap"):
                        kind = "run" if parent in warm else "warm"
                        warm.add(pid)
                    sample[kind] += linux.private_bytes(pid) / 1e6
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


NOTEBOOK = """
import torch
from autograder import race


def numbers(generator, device):
    return torch.rand(192, 192, generator=generator)


def repeated(unit, times):
    def function(given):
        for _ in range(times):
            result = unit(given)
        return result
    return function


def product(matrix):
    return matrix @ matrix


given_80, given_90, given_110, given_125 = (repeated(product, times) for times in (32, 36, 44, 50))
"""
ANSWER = """
def answer(given):
    for _ in range(20):
        result = given @ given
    return result
"""


def verdicts(each: int, drawn: int) -> list[dict]:
    """Races through the whole grader at true ratios of 0.8 to 1.25 times the one asked for.

    ``each`` real verdicts for a ratio; from their launches ``drawn`` more are drawn with replacement.
    """
    rows = []
    with Sandbox() as box:
        for percent in tqdm((80, 90, 110, 125), desc="judging", unit="ratio"):
            test = f"race(answer, against=given_{percent}, on=numbers, at_least={{'cpu': 2}}, points=1)"
            roles = [("given", NOTEBOOK), ("student", ANSWER), *[("test", test)] * each]
            cells = [
                {"index": i, "role": role, "source": source, "grade_id": f"c{i}", "exercise": f"c{i}"}
                for i, (role, source) in enumerate(roles)
            ]
            done = box.run(cells, assignment="bench", notebook_seconds=3600)
            shown = [
                output.get("data", {}).get(MIME) for outputs in done.outputs.values() for output in outputs
            ]
            cards = [card for card in shown if card]
            logs = [log - math.log(2) for card in cards for log in card["laps"][0]["logs"]]
            wrong = "slower" if percent > 100 else "faster"
            words = [drawn_verdict(logs, random.Random(number)) for number in range(drawn)]
            rows.append(
                {
                    "ratio": percent / 100,
                    "verdicts": len(cards),
                    "wrong": sum(
                        c["outcome"] == {"slower": "failed", "faster": "passed"}[wrong] for c in cards
                    ),
                    "undecided": sum(card["outcome"] == "undecided" for card in cards),
                    "launches": len(logs),
                    "drawn": drawn,
                    "drawn_wrong": words.count(wrong),
                    "drawn_undecided": words.count("undecided"),
                    "seconds": round(done.seconds["races"] / len(cards), 2),
                }
            )
    return rows


def drawn_verdict(logs: list[float], source: random.Random) -> str:
    """A verdict on launches drawn with replacement."""
    test = SignTest()
    for _ in range(MOST_LAUNCHES):
        test.add(source.choice(logs))
        if (word := test.word(ERROR)) != "undecided":
            return word
    return "undecided"


def measure(class_size: int, racing: int, large: int, each: int, scratch: Path) -> dict:
    """All parts, in this order: ours, plain, with races, a large class, verdicts."""
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
        "verdicts": verdicts(each, drawn=10_000),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small class, to see that it works")
    parser.add_argument("--output", type=Path, default=ROOT / "data" / "grading.json")
    options = parser.parse_args()
    sizes = (4, 2, 8, 2) if options.quick else (60, 10, 300, 8)
    with tempfile.TemporaryDirectory(prefix="grading-") as scratch:
        table = measure(*sizes, Path(scratch))
    options.output.write_text(json.dumps(table, indent=1) + "\n")
    print(json.dumps(table, indent=1))
    print(f"Written to {options.output}.")


if __name__ == "__main__":
    main()
