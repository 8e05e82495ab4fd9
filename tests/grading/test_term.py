"""The page about a term, and each student's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from grading_class import Says, a_class, gradebook, graded, handed_in
from test_report import Text

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading.results import ClassResults, Graded, GradedTest
from autograder.class_grading.term import Term, main, student_page, term_page, to_look_at

ODD = "o'brien <b>&"


def a_term(folder: Path, root: Path) -> None:
    """Three have handed in one of two assignments, one of them late; one test is decided by hand."""
    course = a_class(folder, root, students=("ada", "bo", "chen"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(course.folder)
        Path("late.csv").write_text("assignment,student,percent_a_day\n*,*,50\n")
        handed_in("bo").with_name("timestamp.txt").write_text("2027-03-06 00:00:00 UTC")
        with gradebook() as opened:
            opened.update_or_create_assignment("traps", duedate="2027-03-05 12:00:00 UTC")
            opened.update_or_create_assignment("later", duedate="2027-04-05 12:00:00 UTC")
            opened.add_student(ODD)
        graded()
        with gradebook() as opened:
            opened.find_grade("double_check", "traps", "traps", "chen").manual_score = 0.25
            opened.db.commit()


def test_the_command_writes_a_page_and_one_for_each_student(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    a_term(tmp_path / "class", root)
    monkeypatch.chdir(tmp_path / "class")
    reports = Path.cwd() / "reports"
    assert says(main).startswith(f"{reports / 'term.html'}, and a page for each of 4 students")
    shown = Text((reports / "term.html").read_text())
    for words in (
        "4 students",
        "1 assignments graded",
        "ada 16 16",
        "bo 8 (late 12 h, −8) 8",
        "chen 15.25 15.25",
        f"{ODD} – 0",
        "traps 2027-03-05 12:00 UTC 3 of 4 1",
        "Decided by hand (1)",
        "traps chen double_check 1 0.25",
        "Nothing suspicious was seen.",
    ):
        assert words in shown.text, words
    assert not shown.tags & {"script", "link", "iframe"} and not shown.addresses
    assert len(list((reports / "students").glob("*.html"))) == 4

    shown = Text((reports / "students/bo.html").read_text())  # it tells of nobody else
    assert "8 of 16 points so far" in shown.text
    assert "double 3 3" in shown.text and "late by 12.0 hours −8" in shown.text
    assert not {"ada", "chen", "brien"} & set(shown.text.lower().split())


def class_of(number: int, solved: int) -> ClassResults:
    graded = [
        Graded(f"s{i}", float(i < solved), [GradedTest("pad_check", float(i < solved), "", "")])
        for i in range(number)
    ]
    return ClassResults("pads", {"pad_check": 1.0}, ["pad"], graded, {}, {})


@pytest.mark.parametrize(
    ("number", "solved", "listed"),
    [(20, 2, True), (20, 4, False), (20, 20, True), (20, 19, False), (4, 0, False)],
)
def test_an_exercise_that_nearly_nobody_or_everybody_solves_is_named(
    number: int, solved: int, listed: bool
) -> None:
    term = Term([class_of(number, solved)], {"pads": None}, [f"s{i}" for i in range(number)])
    (found, *_) = to_look_at(term)
    assert bool(found.rows) == listed


def test_nothing_is_taken_for_html() -> None:
    graded = Graded(ODD, 1.0, [GradedTest(ODD, 1.0, "", "")], [{"cell": ODD, "what": ODD}])
    graded.by_hand = {ODD: (None, 1.0)}
    term = Term([ClassResults(ODD, {ODD: 1.0}, [ODD], [graded], {}, {})], {ODD: None}, [ODD])
    for html in (term_page(term), student_page(term, ODD)):
        shown = Text(html)
        assert "<b>&" not in html and ODD in shown.text


def test_without_grades_there_is_nothing_to_write(course: ScratchCourse, says: Says) -> None:
    assert "Nothing is graded yet. Run `python -m autograder grade ASSIGNMENT` first." in says(main, status=1)
