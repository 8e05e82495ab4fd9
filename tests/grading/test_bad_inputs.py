"""Nothing that lies in a submission's folder stops or hangs grading, feedback or the report, for anybody.

A class of all bad inputs is graded once by each way there is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_inputs import BESIDE, IN_PLACE, NAMELESS, ODD, ONE_LOST, WRONG, hand_in_all
from grading_class import a_class, configure
from pretend_class import FULL, Graded

from autograder.authoring.scratch_course import ScratchCourse

pytestmark = pytest.mark.slow


HANGS = 900  # seconds after which a command counts as hanging
STUDENTS = ("aa_right", *ODD, *ONE_LOST, *WRONG, *IN_PLACE, *BESIDE, "zz_right")


@pytest.fixture(scope="module", params=["make grade", "nbgrader autograde"])
def graded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, root: Path
) -> Iterator[Graded]:
    """The class, graded in one of the two ways; one of them with feedback and report, which read the same."""
    course = a_class(tmp_path_factory.mktemp("class"), root, students=())
    configure(course, "c.RunEveryCell.timeout = 20")
    hand_in_all(course.folder / "submitted", "traps", course.released("traps"))
    said = {}
    if request.param == "make grade":
        said["grade"] = run(course, "autograder", "grade", "traps")
        said["feedback"] = run(course, "nbgrader", "generate_feedback", "traps")
        said["release"] = run(course, "nbgrader", "release_feedback", "traps")
        said["report"] = run(course, "autograder", "report", "traps")
    else:
        said["autograde"] = run(course, "nbgrader", "autograde", "traps")
    found = Graded(course, "traps")
    found.said = said
    yield found
    for closed in course.folder.rglob("closed"):
        closed.chmod(0o700)


def run(course: ScratchCourse, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=course.folder,
        env={**os.environ, **course.environment},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=HANGS,
    )


def test_every_command_comes_to_its_end(graded: Graded) -> None:
    for name, done in graded.said.items():
        said = done.stdout + done.stderr
        # Folders that no student can have are left, and told.
        assert done.returncode == (1 if name == "grade" else 0), (name, said[-2000:])
        assert "Traceback" not in said, name


def test_everybody_has_a_grade_and_right_answers_count_whatever_else_is_there(graded: Graded) -> None:
    assert graded.points.keys() == set(STUDENTS)
    missing = {student: tests for student, tests in graded.points.items() if None in tests.values()}
    assert missing == {}
    found = {student: {test: tests[test] for test in FULL} for student, tests in graded.points.items()}
    right = ("aa_right", "zz_right", *ODD, *BESIDE)
    assert {student: found[student] for student in right} == dict.fromkeys(right, FULL)
    # Code that cannot be read costs one exercise.
    one_lost = {test: points * (not test.startswith("double")) for test, points in FULL.items()}
    assert {student: found[student] for student in ONE_LOST} == dict.fromkeys(ONE_LOST, one_lost)


def test_what_is_no_notebook_gets_0_and_a_page(graded: Graded) -> None:
    for student in (*WRONG, *IN_PLACE):
        assert set(graded.points[student].values()) == {0}, student
        assert "This submission could not be graded" in graded.autograded(student).cells[0].source, student
        if "feedback" in graded.said:
            page = graded.page(student)
            assert "This submission could not be graded" in page and "Traceback" not in page, student


def test_folders_that_no_student_can_have_are_told(graded: Graded) -> None:
    told = [ascii(os.fsdecode(name)[:128]) for name in NAMELESS]
    said = "".join(done.stdout + done.stderr for name, done in graded.said.items() if "grade" in name)
    assert [name for name in told if name not in said] == []
    assert said.count("rename its folder") >= len(NAMELESS)


def test_nothing_but_the_notebook_its_time_and_its_secret_is_taken_over(graded: Graded) -> None:
    for step in ("autograded", "feedback"):
        folder = graded.course.folder / step
        found = {path.name for path in folder.glob("*/traps/**/*")}
        assert found <= {"traps.ipynb", "traps.html", "timestamp.txt", "submission_secret.txt"}


@pytest.mark.parametrize("graded", ["make grade"], indirect=True)
def test_everybody_has_a_page_and_the_report_names_those_without_a_grade(graded: Graded) -> None:
    assert [student for student in STUDENTS if "Score:" not in graded.page(student)] == []
    assert len(list((graded.course.folder / "exchange").rglob("*.html"))) == len(STUDENTS)
    text = (graded.course.folder / "reports" / "traps.html").read_text()
    assert f"{len(STUDENTS)} of {len(STUDENTS) + len(NAMELESS)}" in text
    assert text.count("rename its folder") == len(NAMELESS)
