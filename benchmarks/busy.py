"""Do right answers keep their points where a machine is very busy? Ten students hand in the solutions of each
chapter, and are graded beside 15 busy processes; writes data/busy.json.

    python benchmarks/busy.py                 # twenty minutes on two cores
    python benchmarks/busy.py 03_autograd     # one chapter; the others' figures stay
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from small_class import graded

from autograder.authoring.answers import answers_to, expected_points
from autograder.authoring.builder import solution_sources
from autograder.measuring.device import provenance

ROOT = Path(__file__).resolve().parents[1]
STUDENTS, BUSY = 10, 15


@contextmanager
def load(processes: int) -> Iterator[None]:
    """So many processes that do nothing but compute."""
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: sum(range(100_000))"]) for _ in range(processes)
    ]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def grade(chapter: str, folder: Path) -> dict:
    """Grade a class that hands in the solutions of a chapter: how many got full points, or were put off."""
    answers = answers_to(chapter, ROOT)
    right = dict.fromkeys(answers, "solution")
    handed_in = {
        f"student{number}": {name: answers[name]["solution"].code for name in answers}
        for number in range(STUDENTS)
    }
    results, points = graded(chapter, folder, handed_in)
    wanted = {test: worth.high for test, worth in expected_points(answers, right).items()}
    put_off = {(student, test) for student, test, _ in results.rows("undecided")}
    less = [
        f"{student}, {test}: {got} of {wanted[test]:g}"
        for student, tests in points.items()
        for test, got in tests.items()
        if got != wanted[test] and (student, test) not in put_off
    ]
    return {
        "gradings": len(results.graded),
        "tests": len(wanted) * len(results.graded),
        "less": less,
        "put_off": sorted(f"{student}, {test}" for student, test in put_off),
        "suspected": [graded.student for graded in results.graded if graded.events],
        "failed": results.run["failed"],
        "seconds": round(results.run["seconds"]),
        "load": round(os.getloadavg()[0], 1),  # of the last minute
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="default: all")
    parser.add_argument("--output", type=Path, default=ROOT / "data" / "busy.json")
    options = parser.parse_args()
    table = json.loads(options.output.read_text()) if options.output.exists() else {"chapters": {}}
    with load(BUSY), tempfile.TemporaryDirectory() as scratch:
        for chapter in options.chapters or [source.stem for source in solution_sources(ROOT)]:
            found = grade(chapter, Path(scratch) / chapter)
            print(chapter, json.dumps(found), flush=True)
            table["chapters"][chapter] = found
            table |= {"busy_processes": BUSY, "machine": provenance("cpu"), "date": date.today().isoformat()}
            options.output.write_text(json.dumps(table, indent=1) + "\n")
    short = [place for found in table["chapters"].values() for place in (*found["less"], *found["failed"])]
    print(f"Written to {options.output}. {len(short)} of all have less than they should.")
    sys.exit(bool(short))


if __name__ == "__main__":
    main()
