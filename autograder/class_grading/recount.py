"""Lateness counted anew, for what is graded already: the command ``python -m autograder late``."""

from __future__ import annotations

from nbformat.v4 import new_notebook
from nbgrader.api import Gradebook
from nbgrader.preprocessors import AssignLatePenalties

from ..nbgrader_plugin.late_work import TABLE, read_table
from .course import Course
from .gradebook import GradingError

EXACT = 1e-6


def recount(course: Course, *, apply: bool) -> list[tuple[str, str, str, str]]:
    """Count lateness as grading does, and keep that with ``apply``.

    Gives whose penalties change: the student, the hours late, and the points taken off so far and by the
    table. Raises GradingError for an unknown assignment, and where there is no table.
    """
    if not read_table(course.root / TABLE).lines:
        raise GradingError(f"There is no {TABLE} here, or it is empty.")
    course.submissions()  # it knows what is wrong with the name of an assignment
    lateness = AssignLatePenalties(parent=course.grader)
    with course.opened() as gradebook:
        before = _penalties(course)
        for one in gradebook.assignment_submissions(course.assignment):
            about = {"student": one.student_id, "assignment": course.assignment, "db_url": course.db_url}
            for notebook in one.notebooks:
                lateness.preprocess(new_notebook(), {"nbgrader": {"notebook": notebook.name, **about}})
        after = _penalties(course)
        if apply:
            course.gradebook.commit()
    return [
        (student, f"{hours:.1f}", f"{so_far:g}", f"{round(after[student][1], 2):g}")
        for student, (hours, so_far) in sorted(before.items())
        if abs(so_far - after[student][1]) > EXACT
    ]


def _penalties(course: Course) -> dict[str, tuple[float, float]]:
    """Student -> the hours late, and the points taken off."""
    with Gradebook(course.db_url) as gradebook:
        return {
            one.student_id: (one.total_seconds_late / 3600, one.late_submission_penalty or 0.0)
            for one in gradebook.assignment_submissions(course.assignment)
        }
