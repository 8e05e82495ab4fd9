"""What people enter: what late work costs, due dates, and tables of students.

``late.csv`` has the columns ``assignment``, ``student``, ``extension_days``, ``grace_hours``,
``percent_a_day`` and ``most_percent``. A star stands for all. For each figure the line that says most about a
student counts: one for this student and assignment before one for the student, before one for the assignment,
before one for all; an empty field leaves it to the others.
"""

import csv
import io
import math
import re
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path

from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.utils import gettz, parse_utc

from ..command_line import CommandError
from ..files import read_csv

TABLE = "late.csv"
ALL = "*"
DAY, HOUR = 86_400.0, 3_600.0
THREE_WORDS = re.compile(r"\s*(\S+\s+\S+)\s+(\S+)\s*")  # of a date
OFFSET = re.compile(r"[+-]\d\d:?\d\d")


@dataclass(frozen=True)
class Rule:
    """What lateness costs: ``percent_a_day`` of the points for each day begun, and ``most_percent`` at most.

    Days count from the due date, or the end of the extension. Up to ``grace_hours`` after it cost nothing.
    """

    extension_days: float = 0.0
    grace_hours: float = 0.0
    percent_a_day: float = 0.0
    most_percent: float = 100.0

    def penalty(self, points: float, seconds_late: float) -> float:
        late = seconds_late - self.extension_days * DAY
        if late <= self.grace_hours * HOUR or late <= 0:
            return 0.0
        return points * min(self.percent_a_day * math.ceil(late / DAY), self.most_percent) / 100


FIGURES = [field.name for field in fields(Rule)]
COLUMNS = ["assignment", "student", *FIGURES]
REMARK = re.compile(r"\s*#|[\s,;]*$")  # or an empty line


class LateTable(dict[tuple[str, str], dict[str, float]]):
    """The lines of the table: (assignment, student) -> figure -> value."""

    def rule(self, assignment: str, student: str) -> Rule:
        keys = ((ALL, ALL), (assignment, ALL), (ALL, student), (assignment, student))
        return Rule(**{name: value for key in keys for name, value in self.get(key, {}).items()})

    def longest_extension(self, assignment: str) -> float:
        """The most days that anybody has after the due date of an assignment."""
        students = {student for _, student in self} | {ALL}
        return max(self.rule(assignment, student).extension_days for student in students)


def read_table(path: Path) -> LateTable:
    """The table in a file; without lines where there is no such file. Raises CommandError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return LateTable()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from None
    kept = [(number, line) for number, line in enumerate(text.splitlines(), 1) if not REMARK.match(line)]
    delimiter = ";" if kept and ";" in kept[0][1] else ","
    rows = [[cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))] for _, line in kept]
    header = [name.lower() for name in rows[0]] if rows else COLUMNS
    unknown = [f"has a column {name!r}" for name in header if name not in COLUMNS]
    if unknown or header[:2] != COLUMNS[:2]:
        what = [*unknown, "begins otherwise"][0]
        raise CommandError(f"{path} {what}; its columns are {', '.join(COLUMNS)}.")
    lines = LateTable()
    for (number, _), row in zip(kept[1:], rows[1:], strict=True):
        given = dict(zip(header, row, strict=False))
        key = given.get("assignment") or ALL, given.get("student") or ALL
        where = f"{path}, line {number}"
        if key in lines:
            raise CommandError(f"{where}: there is a line for {' and '.join(key)} already.")
        lines[key] = {name: _figure(given[name], f"{where}: {name}") for name in FIGURES if given.get(name)}
    return lines


def _figure(text: str, where: str) -> float:
    try:
        value = float(text.replace(",", ".").removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise CommandError(f"{where} is {text!r}; it must be a number, 0 or more.")
    return value


class TableOfLateWork(LateSubmissionPlugin):
    """nbgrader's plug-in for late work: as the table says; without one, as ``penalty_method`` says."""

    def late_submission_penalty(self, student_id: str, score: float, seconds_late: float) -> float | None:
        """The points taken off a notebook. Raises CommandError."""
        found = read_table(Path(TABLE))
        if not found:
            return super().late_submission_penalty(student_id, score, seconds_late)
        return found.rule(self.parent.assignment_id, student_id).penalty(score, seconds_late)


def utc(date: datetime | str | None) -> datetime | None:
    """A date in UTC and without its zone, as the gradebook keeps it; one without a zone is in UTC already.

    nbgrader itself takes +0100 for a hundred seconds, and a zone that it does not know for UTC. Raises
    ValueError for a text that is no date, and for such a zone.
    """
    if isinstance(date, str) and (words := THREE_WORDS.fullmatch(date)):
        text, zone = words.groups()
        if OFFSET.fullmatch(zone):
            date = text + zone
        elif not zone[0].isalpha() or gettz(zone) is None:
            how = "2027-03-05 23:59 and one of Europe/Berlin, UTC and +0100"
            raise ValueError(f"{date!r} has no time zone that is known, but {zone!r}. Write it like {how}.")
    return parse_utc(date)


def comma_separated(path: str) -> str:
    """A table's text with commas, whatever a spreadsheet program put there. Raises ValueError: no UTF-8."""
    try:
        table = read_csv(Path(path))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not in UTF-8. Save it as CSV in UTF-8, and start again.") from None
    text = io.StringIO()
    writer = csv.DictWriter(text, table.fieldnames or [], extrasaction="ignore")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()
