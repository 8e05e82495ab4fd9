"""Grades for learning platforms: real nbgrader exports them, and stand-ins take them."""

from __future__ import annotations

from pathlib import Path

import pytest
from grading_class import a_class, nbgrader, scores
from learning_platforms import (
    TOKEN,
    CanvasCourse,
    canvas,
    exported_by_canvas,
    imported_by_canvas,
    imported_by_moodle,
)
from nbgrader.api import Gradebook
from nbgrader.apps import ExportApp

from autograder.authoring.scratch_course import CommandFailed, ScratchCourse

NAME = "traps"
ONE, REALLY = f"--assignment=['{NAME}']", "--CanvasUpload.really=True"
# Student -> points for every test; None for who handed in nothing.
STUDENTS = {"ada": 1.0, "o'brien": 0.5, "josé-ñ": 0.0, "0012345": 1.0, "absent": None, "waiting": None}
FLANN = "o'brien"
FIRST = {"ada": "Ada", "o'brien": "Flann, jr.", "josé-ñ": "José"}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, root: Path) -> ScratchCourse:
    """A course with one assignment; one student is late, and one test of another waits for a decision."""
    course = a_class(tmp_path_factory.mktemp("lms"), root, students=())
    with Gradebook(course.db_url) as gradebook:
        for student, share in STUDENTS.items():
            about = {"first_name": FIRST.get(student), "last_name": "Last", "email": f"{student}@example.org"}
            gradebook.add_student(student, **about)
            if share is None:
                continue
            submission = gradebook.add_submission(NAME, student)
            for notebook in submission.notebooks:
                for grade in notebook.grades:
                    grade.auto_score = share * grade.max_score
                    grade.needs_manual_grade = student == "0012345"
                notebook.late_submission_penalty = 0.25 if student == "ada" else None
        gradebook.db.commit()
    (course.folder / "submitted" / "waiting" / NAME).mkdir(parents=True)
    return course


def export(course: ScratchCourse, exporter: str, *more: str) -> str:
    return nbgrader(course, ExportApp, f"--exporter=autograder.lms.{exporter}", *(more or [ONE]))


def refused(course: ScratchCourse, exporter: str, *more: str) -> str:
    """What the command says that cannot do it."""
    with pytest.raises(CommandFailed) as failed:
        export(course, exporter, *more)
    assert "Traceback" not in str(failed.value)
    return str(failed.value)


def most_points(course: ScratchCourse) -> float:
    with Gradebook(course.db_url) as gradebook:
        return gradebook.find_assignment(NAME).max_score


def canvas_course(most: float) -> CanvasCourse:
    """Logins in other letters; one student has only a SIS id, and one nobody here knows."""
    people = {
        11: {"name": "Lovelace, Ada", "login_id": "ADA"},
        12: {"name": "O'Brien, Flann", "login_id": "o'brien"},
        13: {"name": "Ñandú, José", "login_id": "jn12", "sis_user_id": "josé-ñ"},
        14: {"name": "Zero, Agent", "login_id": "0012345"},
        15: {"name": "Away, Far", "login_id": "absent"},
        16: {"name": "Guest, Some", "login_id": "guest"},
    }
    return CanvasCourse(people, {3: (NAME, most), 4: ("Essay", 10.0)}, {(3, 12): 0.25, (3, 15): 1.0})


# A file for Moodle.


def test_moodle_takes_the_file(graded: ScratchCourse) -> None:
    said = export(graded, "Moodle")
    text = (graded.folder / "moodle.csv").read_text(encoding="utf-8")
    taken = imported_by_moodle(set(STUDENTS), {NAME: most_points(graded)}, text)
    assert {student: found[NAME] for student, found in taken.items()} == scores(graded.db_url)
    assert "Flann, jr." in text
    assert "1 handed in nothing, and have no points here: absent" in said
    assert "1 are not graded yet, and have no points here: waiting" in said
    assert "1 have a test that waits for your decision; their points are those so far: 0012345" in said


def test_exercises_can_have_columns(graded: ScratchCourse) -> None:
    export(
        graded, "Moodle", ONE, "--Moodle.by_exercise=True", "--to=exercises.csv", "--student=['ada','josé-ñ']"
    )
    text = (graded.folder / "exercises.csv").read_text(encoding="utf-8")
    header = text.splitlines()[0].split(",")
    assert {f"{NAME}: double", f"{NAME}: square", f"{NAME}: negate"} <= set(header)
    taken = imported_by_moodle(set(STUDENTS), dict.fromkeys(header[4:], most_points(graded)), text)
    assert taken.keys() == {"ada", "josé-ñ"}
    exercises = sum(taken["ada"][name] for name in header[5:])
    assert exercises == most_points(graded)  # the penalty is in the whole alone
    assert taken["ada"][NAME] == exercises - 0.25


# A file for Canvas.


@pytest.mark.parametrize(("delimiter", "encoding"), [(",", "utf-8"), (";", "utf-8-sig")])
def test_canvas_takes_back_its_own_file_with_the_grades(
    graded: ScratchCourse, delimiter: str, encoding: str
) -> None:
    course = canvas_course(most_points(graded))
    before = dict(course.scores)
    (graded.folder / "canvas.csv").write_text(exported_by_canvas(course, delimiter), encoding=encoding)
    said = export(graded, "Canvas")
    imported_by_canvas(course, (graded.folder / "upload.csv").read_text(encoding="utf-8"))
    numbers = {"ada": 11, "o'brien": 12, "josé-ñ": 13, "0012345": 14}
    new = {(3, numbers[student]): points for student, points in scores(graded.db_url).items()}
    assert course.scores == before | new
    assert list(course.assignments) == [3, 4]
    assert "2 in canvas.csv have no points and are left out: absent, guest" in said


def test_canvas_makes_columns_for_exercises(graded: ScratchCourse) -> None:
    course = canvas_course(most_points(graded))
    del course.people[12]
    (graded.folder / "canvas.csv").write_text(exported_by_canvas(course), encoding="utf-8")
    said = export(graded, "Canvas", ONE, "--Canvas.by_exercise=True")
    imported_by_canvas(course, (graded.folder / "upload.csv").read_text(encoding="utf-8"))
    names = {name: number for number, (name, _) in course.assignments.items()}
    assert course.scores[names[f"{NAME}: double"], 11] > 0
    assert "1 have points and are not in canvas.csv: o'brien" in said


# Canvas itself.


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANVAS_TOKEN", TOKEN)


def to_canvas(address: str, *more: str) -> list[str]:
    """The arguments that send grades there."""
    return ["CanvasUpload", ONE, f"--CanvasUpload.url={address}", "--CanvasUpload.course=7", *more]


def test_grades_are_sent_after_a_look_at_the_list(graded: ScratchCourse, token: None) -> None:
    course, mine = canvas_course(most_points(graded)), scores(graded.db_url)
    course.scores[3, 13] = mine["josé-ñ"]
    before = dict(course.scores)
    new = {(3, 11): mine["ada"], (3, 12): mine["o'brien"], (3, 14): mine["0012345"]}
    with canvas(course) as address:
        said = export(graded, *to_canvas(address))
        assert "3 grades differ, 1 are the same" in said and "Nothing was changed." in said
        changed = [FLANN, NAME, "0.25", "→", f"{mine[FLANN]:g}"]
        assert changed in [line.split() for line in said.splitlines()]
        assert course.scores == before

        assert "3 grades were sent" in export(graded, *to_canvas(address, REALLY))
        assert course.scores == before | new
        assert "0 grades differ, 4 are the same" in export(graded, *to_canvas(address, REALLY))
        assert len(course.changed) == 3


def test_a_grade_that_is_refused_stops_no_other(graded: ScratchCourse, token: None) -> None:
    course = canvas_course(most_points(graded))
    course.refuses = {11}
    with canvas(course) as address:
        said = refused(graded, *to_canvas(address, REALLY))
        assert "Canvas refused 1 grades; the same command tries these again." in said
        assert "ada" in said and "grading period is closed" in said
        assert sorted(person for _, person, _ in course.changed) == [12, 13, 14]
        course.refuses = set()
        export(graded, *to_canvas(address, REALLY))
    assert sorted(person for _, person, _ in course.changed) == [11, 12, 13, 14]


def test_an_assignment_must_be_there(graded: ScratchCourse, token: None) -> None:
    with canvas(canvas_course(most_points(graded))) as address:
        said = refused(graded, *to_canvas(address, "--CanvasUpload.by_exercise=True"))
    assert f"Canvas has no assignment '{NAME}: double'. Make it there first" in said


# What can be wrong.


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["Moodle", "--to=x.csv"], "Name one assignment, as in --assignment"),
        (["Moodle", "--assignment=['nope']"], "The gradebook has no assignment 'nope'"),
        (["Canvas", ONE, "--Canvas.file=none.csv"], "There is no none.csv. Canvas"),
        (
            ["Canvas", ONE, "--Canvas.file=nbgrader_config.py"],
            "nbgrader_config.py is not what Canvas exports",
        ),
        (to_canvas("http://127.0.0.1:9"), "Canvas at http://127.0.0.1:9 does not show course 7"),
    ],
)
def test_it_is_said_in_a_sentence(
    graded: ScratchCourse, token: None, arguments: list[str], sentence: str
) -> None:
    assert sentence in refused(graded, *arguments)


def test_a_wrong_token_is_said(graded: ScratchCourse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CANVAS_TOKEN", raising=False)
    assert "An access token in the variable CANVAS_TOKEN" in refused(graded, "CanvasUpload", ONE)
    monkeypatch.setenv("CANVAS_TOKEN", "another")
    with canvas(canvas_course(1.0)) as address:
        assert "does not show course 7" in refused(graded, *to_canvas(address))
