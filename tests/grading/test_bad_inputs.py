"""Nothing that lies in a submission's folder stops or hangs grading, feedback or the report, for anybody.

A class of all bad inputs is graded once by each way there is.
"""

import json
import os
import sys
from pathlib import Path

import pytest
from bad_inputs import BESIDE, IN_PLACE, NAMELESS, ODD, ONE_LOST, WRONG, hand_in_all
from grading_class import a_class, built_once, configure
from pretend_class import FULL, Graded
from programs import run

from autograder.authoring.scratch_course import ScratchCourse

pytestmark = [pytest.mark.slow, pytest.mark.attack]
STUDENTS = ("aa_right", *ODD, *ONE_LOST, *WRONG, *IN_PLACE, *BESIDE, "zz_right")
SAID = {
    "cut_off": "not valid JSON. The first mistake is in line",
    "empty": "The file traps.ipynb is empty.",
    "web_page": "It looks like a web page.",
    "conflict": "in line 1, column 2: Expecting property name enclosed in double quotes. There stands: {<<<",
    "list": "valid JSON, but it is not a Jupyter notebook",
    "binary": "cannot be read as text",
    "missing": "The submission has no file traps.ipynb.",
    "renamed": "It has my copy.ipynb. Was the notebook renamed?",
    "pipe_in_place": "traps.ipynb is a pipe, and no file of its own.",
    "folder_in_place": "traps.ipynb is a folder",
    "second_name": "a file with a second name (a hard link)",
    "link_to_the_gradebook": "The submission has no file traps.ipynb.",  # links are taken away
}


def grade_all(folder: Path, way: str) -> None:
    """The class, graded in one of the two ways; one of them with feedback and report, which read the same."""
    course = a_class(folder, students=())
    configure(course, "c.RunEveryCell.timeout = 20")
    hand_in_all(course.folder / "submitted", "traps", course.released("traps"))
    commands = [f"{way} traps"]
    if way == "autograder grade":
        commands += [f"nbgrader {name}_feedback traps" for name in ("generate", "release")]
        commands.append("autograder report traps")
    said = {}
    for command in commands:
        there = {"cwd": course.folder, "env": os.environ | course.environment, "errors": "replace"}
        done = run(sys.executable, "-m", *command.split(), **there)
        said[command] = (done.returncode, done.stdout + done.stderr)
    (folder / "said.json").write_text(json.dumps(said))
    for closed in folder.rglob("closed"):
        closed.chmod(0o700)


@pytest.fixture(scope="module", params=["autograder grade", "nbgrader autograde"])
def graded(request: pytest.FixtureRequest) -> Graded:
    """The class that was graded so once for all tests: they only look at it, so they need no copy."""
    folder = built_once(request.param.replace(" ", "_"), lambda new: grade_all(new, request.param))
    found = Graded(ScratchCourse(folder), "traps")
    found.said = json.loads((folder / "said.json").read_text())
    return found


def test_every_command_comes_to_its_end(graded: Graded) -> None:
    for command, (status, said) in graded.said.items():
        # Folders that no student can have are left, and told.
        assert status == (1 if command == "autograder grade traps" else 0), (command, said[-2000:])
        assert "Traceback" not in said, command


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
        if "nbgrader generate_feedback traps" in graded.said:
            page = graded.page(student)
            assert "This submission could not be graded" in page and SAID.get(student, "") in page, student
            assert "Traceback" not in page and "had been deleted" not in page, student


def test_folders_that_no_student_can_have_are_told(graded: Graded) -> None:
    _, said = next(iter(graded.said.values()))
    assert [name for name in NAMELESS if ascii(os.fsdecode(name)[:128]) not in said] == []
    assert said.count("rename its folder") >= len(NAMELESS)


def test_nothing_but_the_notebook_its_time_and_its_secret_is_taken_over(graded: Graded) -> None:
    for step in ("autograded", "feedback"):
        folder = graded.course.folder / step
        found = {path.name for path in folder.glob("*/traps/**/*")}
        assert found <= {"traps.ipynb", "traps.html", "timestamp.txt", "submission_secret.txt"}


@pytest.mark.parametrize("graded", ["autograder grade"], indirect=True)
def test_everybody_has_a_page_and_the_report_names_those_without_a_grade(graded: Graded) -> None:
    assert [student for student in STUDENTS if "Score:" not in graded.page(student)] == []
    assert len(list((graded.course.folder / "exchange").rglob("*.html"))) == len(STUDENTS)
    text = (graded.course.folder / "reports" / "traps.html").read_text()
    assert f"{len(STUDENTS)} of {len(STUDENTS) + len(NAMELESS)}" in text
    assert text.count("rename its folder") == len(NAMELESS)
