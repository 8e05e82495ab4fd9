"""The real chapter goes through all of nbgrader, and its answers get the points that they are worth."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from pretend_class import Graded, api, hand_in

from autograder.authoring.answers import points_of
from autograder.authoring.builder import build
from autograder.authoring.scratch_course import ScratchCourse
from autograder.roles import solution_cells

CHAPTER = "01_tensor_creation"

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")]


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rehearsal") / "class"


@pytest.fixture(scope="module")
def printed(root: Path, scratch: Path) -> str:
    """What a small rehearsal prints; it must succeed."""
    before = {name: contents(root / name) for name in (f"solutions/{CHAPTER}", f"exercises/{CHAPTER}")}
    command = [sys.executable, "-m", "autograder", "rehearsal", "--students", "3", "--scratch", str(scratch)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {name: contents(root / name) for name in before} == before
    return done.stdout


def test_a_small_class_gets_the_points_its_answers_are_worth(printed: str, scratch: Path) -> None:
    assert "All points are as expected." in printed
    totals = {words[0]: words[-1] for line in printed.splitlines() if (words := line.split())}
    with (scratch / "grades.csv").open() as file:
        grades = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert grades == {student: float(totals[student]) for student in ("ada", "bo", "chen")}
    for student in grades:
        assert (scratch / "feedback" / student / CHAPTER / f"{CHAPTER}.html").exists()


def test_results_of_the_wrong_kind_get_no_points_and_a_reason(
    printed: str, scratch: Path, root: Path
) -> None:
    course = ScratchCourse(scratch, root)
    notebook = course.released(CHAPTER)
    wrong = {
        "one_hot": "def one_hot(labels, classes):\n    return [0.0] * classes",
        "positional_table": "def positional_table(length, width, base, device):\n"
        "    return torch.zeros(width, length)",
        "wrap": "def wrap(array):\n    torch.from_numpy(array)",
        "stack_images": "def stack_images(images):\n"
        "    return torch.full((len(images), 3, *images[0].shape[:2]), float('nan'))",
        "pad": "def pad(rows, value):\n    return pad(rows, value)",
        "rows": "class Rows:\n    def __init__(self, width, dtype, device): self.dtype = dtype\n"
        "    def append(self, rows): pass\n    def all(self): return torch.zeros(3, dtype=self.dtype)",
    }
    for exercise, cell in solution_cells(notebook).items():
        cell.source = wrong[exercise]
    hand_in(course, CHAPTER, "wrong", notebook)
    assert api(course).autograde(CHAPTER, "wrong")["success"]
    assert api(course).generate_feedback(CHAPTER, "wrong")["success"]
    graded = Graded(course, CHAPTER)
    source = build(root / "solutions" / CHAPTER / f"{CHAPTER}.py")
    assert graded.points["wrong"].keys() == points_of(source).keys()
    endings = ("_check", "_hidden", "_race")
    tests = [test for test in graded.points["wrong"] if test.endswith(endings)]
    assert len(tests) == 3 * len(wrong) - 1  # a class is not raced
    assert {test: graded.points["wrong"][test] for test in tests} == dict.fromkeys(tests, 0)
    page = graded.page("wrong")
    for reason in ("is of type list", "has the shape (64, 256)", "is None", "is nan", "RecursionError"):
        assert reason in page, reason
