"""The real chapter goes through all of nbgrader, and its answers get the points that they are worth."""

import csv
import sys
from pathlib import Path

import pytest
from programs import printed
from repository import ROOT

CHAPTER = "01_tensor_creation"


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.needs("bubblewrap")
@pytest.mark.slow
def test_a_small_class_gets_the_points_its_answers_are_worth(tmp_path: Path) -> None:
    scratch = tmp_path / "class"
    before = {name: contents(ROOT / name) for name in (f"solutions/{CHAPTER}", f"exercises/{CHAPTER}")}
    command = (sys.executable, "-m", "autograder", "rehearsal", "--students", "3", "--scratch", scratch)
    said = printed(*command, cwd=ROOT)
    assert {name: contents(ROOT / name) for name in before} == before
    assert "All points are as expected." in said
    totals = {words[0]: words[-1] for line in said.splitlines() if (words := line.split())}
    with (scratch / "grades.csv").open() as file:
        grades = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert grades == {student: float(totals[student]) for student in ("ada", "bo", "chen")}
    for student in grades:
        assert (scratch / "feedback" / student / CHAPTER / f"{CHAPTER}.html").exists()
