"""How hard are the exercises? Grades what readers answered at their first attempt; writes data/attempts.json.

The readers know Python and some PyTorch. They had a chapter and its exercises, hints folded, and ran nothing:
each answer was written once. ``tests/attempts/NN_topic.py`` holds them, a cell for each exercise::

    # %% one_hot 1f0c66b2d1
    def one_hot(labels, classes): ...

The letters stand for the code that the exercise had then (its given versions, inputs and tests). An attempt
at an exercise whose code is another one now says nothing about it, and is left out.

    python benchmarks/attempts.py                 # all chapters, twenty minutes
    python benchmarks/attempts.py 03_autograd     # one; the others' figures stay
    python benchmarks/attempts.py --codes 03_autograd
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
from datetime import date
from pathlib import Path

from nbformat import NotebookNode
from small_class import graded

from autograder.authoring.answers import points_of
from autograder.authoring.builder import build
from autograder.measuring.device import provenance
from autograder.roles import exercise_of, nbgrader_data, solution_cells

ROOT = Path(__file__).resolve().parents[1]
ATTEMPTS = ROOT / "tests" / "attempts"
HEADER = re.compile(r"# %% (\w+) ([0-9a-f]{10})")


def codes(source: NotebookNode) -> dict[str, str]:
    """Exercise -> what changes with the code that stands around its answer, and not with words."""
    exercises = solution_cells(source)
    parts: dict[str, list[str]] = {exercise: [] for exercise in exercises}
    for cell in source.cells:
        name = nbgrader_data(cell).get("grade_id", "")
        if cell.cell_type == "code" and name not in exercises and (exercise := exercise_of(name, exercises)):
            parts[exercise].append(cell.source)
    return {
        exercise: hashlib.sha256("\0".join(cells).encode()).hexdigest()[:10]
        for exercise, cells in parts.items()
    }


def attempts_at(chapter: str) -> dict[str, tuple[str, str]]:
    """Exercise -> the letters that its attempt was made for, and the code. Raises ValueError for a header."""
    found = {}
    path = ATTEMPTS / f"{chapter}.py"
    for cell in re.split(r"(?m)^(?=# %%)", path.read_text(encoding="utf-8"))[1:]:
        header, _, code = cell.partition("\n")
        if not (words := HEADER.fullmatch(header.rstrip())):
            raise ValueError(f"{path}: expected '# %% exercise letters', but found {header!r}")
        found[words[1]] = (words[2], code.strip())
    return found


def grade(chapter: str, folder: Path) -> dict[str, dict]:
    """Exercise -> its points, and those of the attempt; no entry where the exercise is another one now."""
    source = build(ROOT / "solutions" / chapter / f"{chapter}.py")
    now, most = codes(source), points_of(source)
    answers = {name: code for name, (then, code) in attempts_at(chapter).items() if now.get(name) == then}
    if not answers:
        return {}
    _, points = graded(chapter, folder, {"reader": answers})
    table: dict[str, dict] = {}
    for test, got in points["reader"].items():
        exercise = exercise_of(test, now)
        if exercise in answers:
            row = table.setdefault(exercise, {"points": 0.0, "of": 0.0, "tests": {}})
            row["points"] += got or 0.0
            row["of"] += most[test]
            row["tests"][test.removeprefix(f"{exercise}_")] = [got, most[test]]
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="default: all")
    parser.add_argument("--codes", action="store_true", help="print the letters of each exercise, and stop")
    parser.add_argument("--output", type=Path, default=ROOT / "data" / "attempts.json")
    options = parser.parse_args()
    chapters = options.chapters or sorted(path.stem for path in ATTEMPTS.glob("*.py"))
    if options.codes:
        for chapter in chapters:
            for exercise, letters in codes(build(ROOT / "solutions" / chapter / f"{chapter}.py")).items():
                print(chapter, exercise, letters)
        sys.exit()
    table = json.loads(options.output.read_text()) if options.output.exists() else {"chapters": {}}
    with tempfile.TemporaryDirectory() as scratch:
        for chapter in chapters:
            found = grade(chapter, Path(scratch) / chapter)
            print(chapter, json.dumps(found), flush=True)
            table["chapters"][chapter] = found
            table |= {"machine": provenance("cpu"), "date": date.today().isoformat()}
            options.output.write_text(json.dumps(table, indent=1) + "\n")
    rows = [row for found in table["chapters"].values() for row in found.values()]
    whole = sum(row["points"] == row["of"] for row in rows)
    print(f"{whole} of {len(rows)} attempts got all points. Written to {options.output}.")


if __name__ == "__main__":
    main()
