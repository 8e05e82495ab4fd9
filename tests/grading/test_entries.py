"""What an instructor enters: what late work costs, for those graded before, too; due dates; tables."""

import re
from datetime import datetime
from pathlib import Path

import pytest
from grading_class import Says, due, nbgrader, scores
from nbgrader.api import Gradebook
from nbgrader.apps import DbAssignmentAddApp, DbStudentImportApp
from pretend_pools import graded
from repository import ROOT

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading.class_commands import late as main
from autograder.command_line import CommandError
from autograder.nbgrader_plugin.entries import Rule, read_table, utc

pytestmark = pytest.mark.slow  # nbgrader's own commands, or a gradebook for each test
# All have 16 points. Student -> when it was handed in, and the penalty by TABLE.
HANDED_IN = {
    "ada": ("2027-03-05 11:59:59 UTC", 0.0),
    "bo": ("2027-03-05 13:00:00 UTC", 0.0),  # within the grace
    "chen": ("2027-03-05 13:00:01 UTC", 1.6),
    "dalia": ("2027-03-07 12:00:01 UTC", 4.8),  # the third day has begun
    "emeka": ("2027-04-05 12:00:00 UTC", 8.0),  # the most there is
    "fumi": ("2027-03-09 12:00:00 UTC", 1.6),  # has three days more
}
TABLE = """\
# What is late, and what it costs.
assignment,student,extension_days,grace_hours,percent_a_day,most_percent
*,*,,1,10,50
traps,fumi,3,,,
another,*,,0,100,100
"""
WANTED = {student: penalty for student, (_, penalty) in HANDED_IN.items()}


def penalties() -> dict[str, float]:
    return {student: round(16 - score, 6) for student, score in scores().items()}


def test_grading_takes_off_what_a_table_says_or_a_later_one(course: ScratchCourse, says: Says) -> None:
    due(**{student: time for student, (time, _) in HANDED_IN.items()})
    graded()
    assert set(penalties().values()) == {0.0}, "without a table, lateness costs nothing"
    Path("late.csv").write_text(TABLE)
    said = says(main, "traps")
    assert "4 penalties would change." in said and "fumi" in said
    assert set(penalties().values()) == {0.0}
    assert "4 penalties changed." in says(main, "traps", "--apply")
    assert penalties() == WANTED
    assert "0 penalties would change." in says(main, "traps")
    # A more generous one takes it back.
    Path("late.csv").write_text("assignment,student,extension_days\ntraps,*,60\n")
    says(main, "traps", "--apply")
    assert set(penalties().values()) == {0.0}
    Path("late.csv").write_text(TABLE)
    graded(force=True)
    assert penalties() == WANTED


def test_the_line_that_says_most_counts(tmp_path: Path) -> None:
    (tmp_path / "late.csv").write_text(
        "assignment;student;percent_a_day;grace_hours;extension_days\n"
        "*;*;10;2;\n*;ada;;;1\none;*;20;;\none;ada;0;;\n"
    )
    table = read_table(tmp_path / "late.csv")
    assert table.rule("two", "bo") == Rule(percent_a_day=10, grace_hours=2)
    assert table.rule("two", "ada") == Rule(percent_a_day=10, grace_hours=2, extension_days=1)
    assert table.rule("one", "bo") == Rule(percent_a_day=20, grace_hours=2)
    assert table.rule("one", "ada") == Rule(percent_a_day=0, grace_hours=2, extension_days=1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("assignment,student,percent\n*,*,10\n", "has a column 'percent'; its columns are assignment, "),
        ("student,assignment,percent_a_day\n*,*,10\n", "late.csv begins otherwise"),
        ("assignment,student,percent_a_day\n*,*,ten\n", "late.csv, line 2: percent_a_day is 'ten'"),
        ("# why\nassignment,student,grace_hours\n*,*,-1\n", "late.csv, line 3: grace_hours is '-1'"),
        ("assignment,student,grace_hours\n*,*,1\n,,2\n", "line 3: there is a line for * and * already"),
    ],
)
def test_a_table_that_is_wrong_is_said(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "late.csv").write_text(text)
    with pytest.raises(CommandError, match=re.escape(sentence)):
        read_table(tmp_path / "late.csv")


def test_nobody_is_graded_by_a_table_that_is_wrong(course: ScratchCourse, says: Says) -> None:
    assert "There is no late.csv here" in says(main, "traps", status=1)
    Path("late.csv").write_text("assignment,student,grace_hours\n*,*,soon\n")
    with pytest.raises(CommandError, match="grace_hours is 'soon'"):
        graded()
    assert "late.csv, line 2: grace_hours is 'soon'" in says(main, "traps", status=1)
    Path("late.csv").write_text(TABLE)
    assert "has no assignment 'tarps'. Did you mean traps?" in says(main, "tarps", status=1)


# What else is entered: due dates with all kinds of zones, and tables from spreadsheet programs.

PEOPLE = [("ada", "Ada", "Lovelace"), ("0012345", "José", "Ñandú, jr.")]


@pytest.mark.parametrize(
    ("written", "time"),
    [
        ("2027-03-05 23:59 +0100", "2027-03-05 22:59"),
        ("2027-03-05 23:59+01:00", "2027-03-05 22:59"),
        ("2027-03-05 16:59 -0530", "2027-03-05 22:29"),
        ("2027-03-05 23:59 Europe/Berlin", "2027-03-05 22:59"),
        ("2027-07-05 23:59 Europe/Berlin", "2027-07-05 21:59"),
        ("2027-03-05 22:59 UTC", "2027-03-05 22:59"),
        ("2027-03-05 22:59", "2027-03-05 22:59"),
        ("2027-03-05T22:59Z", "2027-03-05 22:59"),
    ],
)
def test_a_due_date_is_the_time_that_it_says(written: str, time: str) -> None:
    assert utc(written) == datetime.fromisoformat(time)


@pytest.mark.parametrize("zone", ["Europe/Berln", "PM", "+1", "MEZ"])
def test_a_zone_that_is_not_known_is_not_taken_for_another(zone: str) -> None:
    with pytest.raises(ValueError, match="has no time zone that is known"):
        utc(f"2027-03-05 11:59 {zone}")


@pytest.mark.parametrize(("delimiter", "encoding"), [(",", "utf-8"), (",", "utf-8-sig"), (";", "utf-8-sig")])
def test_students_from_any_spreadsheet(tmp_path: Path, delimiter: str, encoding: str) -> None:
    course = ScratchCourse(tmp_path, ROOT)
    rows = [("id", "first_name", "last_name"), *PEOPLE]
    text = "".join(delimiter.join(f'"{cell}"' for cell in row) + "\r\n" for row in rows)
    (tmp_path / "students.csv").write_bytes(text.encode(encoding))
    nbgrader(course, DbStudentImportApp, "students.csv")
    with Gradebook(course.db_url) as gradebook:
        assert {(one.id, one.first_name, one.last_name) for one in gradebook.students} == set(PEOPLE)


def test_nbgraders_command_enters_the_right_time_or_says_a_sentence(tmp_path: Path) -> None:
    course = ScratchCourse(tmp_path, ROOT)
    nbgrader(course, DbAssignmentAddApp, "traps", "--duedate=2027-03-05 23:59 +0100")
    for wrong, sentence in (
        ("2027-03-06 23:59 Europe/Berln", "has no time zone that is known, but 'Europe/Berln'"),
        ("tomorrow", "Unknown string format: tomorrow"),
    ):
        said = nbgrader(course, DbAssignmentAddApp, "traps", f"--duedate={wrong}", status=1)
        assert sentence in said
    with Gradebook(course.db_url) as gradebook:
        assert gradebook.find_assignment("traps").duedate == datetime(2027, 3, 5, 22, 59)
