"""The command ``python -m autograder late``: lateness counted anew, for what is graded already."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook

from ..nbgrader_plugin.late_work import TABLE, LateTable, LateTableError, read_table
from ..show import table_text
from .course import Course, GradingError

EXACT = 1e-6


@dataclass(frozen=True)
class Recount:
    """One student's penalty in an assignment: how late, and the points taken off so far and by the table."""

    student: str
    hours_late: float
    before: float
    after: float


def changes(course: Course, table: LateTable, *, apply: bool) -> list[Recount]:
    """Whose penalties differ from the table's; with ``apply`` all of them are written to the gradebook."""
    found = []
    course.submissions()  # it knows what is wrong with the name of an assignment
    with course.gradebook.shared() as shared, Gradebook(course.db_url) as gradebook:
        for submission in gradebook.assignment_submissions(course.assignment):
            rule = table.rule(course.assignment, submission.student_id)
            seconds = submission.total_seconds_late
            before = submission.late_submission_penalty or 0.0
            after = 0.0
            for notebook in submission.notebooks:
                penalty = min(rule.penalty(notebook.score, seconds), notebook.score) if seconds else 0.0
                after += penalty
                if apply:
                    notebook.late_submission_penalty = penalty or None
            if abs(before - after) > EXACT:
                found.append(Recount(submission.student_id, seconds / 3600, before, after))
        if apply:
            gradebook.db.flush()
            shared.commit()
    return sorted(found, key=lambda one: one.student)


def main(argv: list[str] | None = None) -> int:
    """Say what the table changes, and change it with ``--apply``; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m autograder late",
        description=f"Count lateness anew, as {TABLE} says it now, for submissions that are graded already.",
    )
    parser.add_argument("assignment", metavar="ASSIGNMENT")
    parser.add_argument(
        "--apply", action="store_true", help="change the grades; otherwise only list the changes"
    )
    parser.add_argument("--db", metavar="URL", help="the gradebook (default: the one in nbgrader_config.py)")
    options = parser.parse_args(argv)
    try:
        table = read_table(Path(TABLE))
        if not table.lines:
            raise LateTableError(f"There is no {TABLE} here, or it is empty.")
        with Course(options.assignment, options.db) as course, course.locked():
            found = changes(course, table, apply=options.apply)
    except (LateTableError, GradingError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    rows = [
        (one.student, f"{one.hours_late:.1f}", f"{one.before:g}", f"{round(one.after, 2):g}") for one in found
    ]
    if rows:
        print(table_text(("student", "hours late", "penalty so far", "by the table"), rows))
    if options.apply:
        print(f"{len(found)} penalties changed. Feedback pages are to be made and released anew.")
    else:
        print(f"{len(found)} penalties would change. To change them: the same with --apply")
    return 0
