"""What an instructor enters: due dates with all kinds of zones, and tables from spreadsheet programs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from grading_class import nbgrader
from nbgrader.api import Gradebook
from nbgrader.apps import DbAssignmentAddApp, DbStudentImportApp

from autograder.authoring.scratch_course import CommandFailed, ScratchCourse
from autograder.nbgrader_plugin.entries import comma_separated, utc

NAMES = [("ada", "Ada", "Lovelace"), ("0012345", "José", "Ñandú, jr.")]


@pytest.mark.parametrize(
    ("written", "time"),
    [
        ("2027-03-05 23:59 +0100", "2027-03-05 22:59"),
        ("2027-03-05 23:59 +01:00", "2027-03-05 22:59"),
        ("2027-03-05T23:59+0100", "2027-03-05 22:59"),
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


def test_what_is_no_text_stays() -> None:
    assert utc(None) is None
    assert utc(datetime(2027, 3, 5)) == datetime(2027, 3, 5)


@pytest.mark.parametrize("zone", ["Europe/Berln", "PM", "+1", "MEZ"])
def test_a_zone_that_is_not_known_is_not_taken_for_another(zone: str) -> None:
    with pytest.raises(ValueError, match="has no time zone that is known"):
        utc(f"2027-03-05 11:59 {zone}")


def table(delimiter: str) -> str:
    rows = [("id", "first_name", "last_name"), *NAMES]
    return "".join(delimiter.join(f'"{cell}"' for cell in row) + "\r\n" for row in rows)


@pytest.mark.parametrize(("delimiter", "encoding"), [(",", "utf-8"), (",", "utf-8-sig"), (";", "utf-8-sig")])
def test_students_come_from_any_spreadsheet(
    tmp_path: Path, root: Path, delimiter: str, encoding: str
) -> None:
    course = ScratchCourse(tmp_path, root)
    (tmp_path / "students.csv").write_bytes(table(delimiter).encode(encoding))
    nbgrader(course, DbStudentImportApp, "students.csv")
    with Gradebook(course.db_url) as gradebook:
        assert {(one.id, one.first_name, one.last_name) for one in gradebook.students} == set(NAMES)


def test_nbgraders_command_enters_the_right_time_or_says_a_sentence(tmp_path: Path, root: Path) -> None:
    course = ScratchCourse(tmp_path, root)
    nbgrader(course, DbAssignmentAddApp, "traps", "--duedate=2027-03-05 23:59 +0100")
    for wrong, sentence in (
        ("2027-03-06 23:59 Europe/Berln", "has no time zone that is known, but 'Europe/Berln'"),
        ("tomorrow", "Unknown string format: tomorrow"),
    ):
        with pytest.raises(CommandFailed) as failed:
            nbgrader(course, DbAssignmentAddApp, "traps", f"--duedate={wrong}")
        assert sentence in str(failed.value) and "Traceback" not in str(failed.value)
    with Gradebook(course.db_url) as gradebook:
        assert gradebook.find_assignment("traps").duedate == datetime(2027, 3, 5, 22, 59)


def test_a_table_in_an_old_encoding_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "students.csv"
    path.write_bytes(table(",").encode("latin-1"))
    with pytest.raises(ValueError, match=r"students\.csv is not in UTF-8\. Save it as CSV in UTF-8"):
        comma_separated(str(path))
