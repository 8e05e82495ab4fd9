"""Lateness counted anew, for what is graded already: the command ``python -m autograder late``."""

from nbformat.v4 import new_notebook
from nbgrader.preprocessors import AssignLatePenalties

from ..nbgrader_plugin.entries import TABLE, read_table
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
        submissions = gradebook.assignment_submissions(course.assignment)
        before = {one.student_id: one.late_submission_penalty or 0.0 for one in submissions}
        for one in submissions:
            about = {"student": one.student_id, "assignment": course.assignment, "db_url": course.db_url}
            for notebook in one.notebooks:
                lateness.preprocess(new_notebook(), {"nbgrader": {"notebook": notebook.name, **about}})
        gradebook.db.expire_all()  # it was written through other sessions
        found = []
        for one in sorted(submissions, key=lambda one: one.student_id):
            so_far, now = before[one.student_id], one.late_submission_penalty or 0.0
            if abs(so_far - now) > EXACT:
                hours = one.total_seconds_late / 3600
                found.append((one.student_id, f"{hours:.1f}", f"{so_far:g}", f"{round(now, 2):g}"))
        if apply:
            course.gradebook.commit()
    return found
