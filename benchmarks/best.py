"""How fast the best known answer to each exercise is, beside the given version: data/best.json, for cards.

The class hands in the solutions and all answers of ``tests/answers`` that must get all points in their races.
Clinics are left out: students get this table, and a clinic asks which pieces can be faster, and by how much.

    python benchmarks/best.py                 # all chapters, half an hour; leave the machine alone
    python benchmarks/best.py 03_autograd     # one; the others' figures stay
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from datetime import date
from pathlib import Path

from small_class import graded

from autograder.authoring.answers import answers_to
from autograder.authoring.builder import build
from autograder.measuring.device import provenance
from autograder.roles import calls_of, is_test, nbgrader_data, parsed

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "data" / "best.json"


def races_in(chapter: str) -> dict[str, str]:
    """Test cell -> the names of its race's given version and inputs, as a card looks for them."""
    found = {}
    for cell in build(ROOT / "solutions" / chapter / f"{chapter}.py").cells:
        for call in calls_of(parsed(cell.source), "race") if is_test(cell) else ():
            names = {word.arg: getattr(word.value, "id", "") for word in call.keywords}
            found[nbgrader_data(cell)["grade_id"]] = f"{names['against']} on {names['on']}"
    return found


def best(chapter: str, folder: Path) -> dict[str, float]:
    """Race -> the highest ratio that an answer reached on the CPU."""
    races = races_in(chapter)
    handed_in: dict[str, dict[str, str]] = defaultdict(dict)
    for exercise, kinds in answers_to(chapter, ROOT).items():
        full = kinds["solution"].points
        right = [
            answer.code
            for answer in kinds.values()
            if answer.code is not None
            and all(answer.points[test].low == full[test].high for test in full if test in races)
        ]
        for number, code in enumerate(right):
            handed_in[f"student{number}"][exercise] = code
    results, _ = graded(chapter, folder, handed_in)
    found: dict[str, float] = {}
    for test in (test for one in results.graded for test in one.tests if test.name in races):
        for lap in test.laps if test.outcome == "passed" else ():
            if lap.device == "cpu":
                name = races[test.name]
                found[name] = max(found.get(name, 0), float(f"{lap.ratio:.3g}"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="default: all but clinics")
    names = sorted(path.name for path in (ROOT / "solutions").iterdir())
    chapters = parser.parse_args().chapters or [name for name in names if not name.startswith("clinic")]
    table = json.loads(FILE.read_text()) if FILE.exists() else {"races": {}}
    with tempfile.TemporaryDirectory() as scratch:
        for chapter in chapters:
            table["races"] |= best(chapter, Path(scratch) / chapter)
            table |= {"machine": provenance("cpu"), "date": date.today().isoformat()}
            FILE.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
