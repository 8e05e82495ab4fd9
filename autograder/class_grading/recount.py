"""Lateness counted anew, for what is graded already: the command ``python -m autograder late``."""

from __future__ import annotations

from dataclasses import dataclass

from ..nbgrader_plugin.late import TABLE, read_table
from .course import Course
from .gradebook import GradingError

EXACT = 1e-6


@dataclass(frozen=True)
class Recount:
    """One student's penalty in an assignment: how late, and the points taken off so far and by the table."""

    student: str
    hours_late: float
    before: float
    after: float


def changes(course: Course, *, apply: bool) -> list[Recount]:
    """Whose penalties differ from the table's; with ``apply`` all of them are written to the gradebook.

    Raises GradingError for an unknown assignment, and where there is no table.
    """
    table = read_table(course.root / TABLE)
    if not table.lines:
        raise GradingError(f"There is no {TABLE} here, or it is empty.")
    found = []
    course.submissions()  # it knows what is wrong with the name of an assignment
    with course.opened() as gradebook:
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
            course.gradebook.commit()
    return sorted(found, key=lambda one: one.student)
