"""What is graded already, looked at again: one exercise after a dispute (``python -m autograder again``), and
what lateness costs (``python -m autograder late``).

After a dispute the submission runs as in grading, but only the tests of this exercise judge it. The old
verdict is kept beside the new one, the other exercises keep their points, and what was decided by hand stays.
"""

from dataclasses import asdict, dataclass
from datetime import datetime, timezone

import nbformat
from nbformat.v4 import new_notebook
from nbgrader.api import Grade, Gradebook
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import determine_grade

from ..files import write_whole
from ..nbgrader_plugin.entries import TABLE, read_table
from ..nbgrader_plugin.points import by_cell, exercise_of_each, save_grade
from ..nbgrader_plugin.submissions import problem_of
from ..roles import exercise_of, nbgrader_data
from ..sandbox import Executed
from ..show import did_you_mean, table_text, visible
from .course import Course, Submission, SubmissionError
from .engine import Job, run_all
from .gradebook import GradingError
from .grader import Prepared
from .pool import Pool
from .results import Verdict, verdict_of
from .status import Status

EXACT = 1e-6  # points


@dataclass
class JudgedTwice:
    """Both verdicts of a test, the points that somebody gave in their place, and which of these counts."""

    test: str
    before: Verdict
    now: Verdict
    by_hand: float | None
    counts: str = "before"


def judge_again(
    course: Course, submission: Submission, exercise: str, pool: Pool, keep: str | None = None
) -> tuple[str, bool]:
    """Judge one exercise of a submission again, and keep both verdicts.

    The new one counts if it gives more points and ``keep`` is "better", or if ``keep`` is "new"; but not in
    place of a decision by hand. Gives both side by side, as text, and whether any new one counts.

    Raises GradingError, or SubmissionError where this submission cannot be judged again.
    """
    student = submission.student
    if why := course.reason(submission):
        raise SubmissionError(f"grade it first, as {why}: python -m autograder grade {course.assignment}")
    prepared, executed, tests = _run(course, submission, exercise, pool)
    page = course.autograded(student) / prepared.path.name
    with course.explained(student), Gradebook(course.db_url) as gradebook:
        judged = course.grader.judged(prepared, executed)
        cells = {nbgrader_data(judged.cells[index])["grade_id"]: judged.cells[index] for index in tests}
        notebook = nbformat.read(page, as_version=4)
        old = {nbgrader_data(cell).get("grade_id"): cell for cell in notebook.cells}
        of_student = gradebook.find_submission_notebook(prepared.path.stem, course.assignment, student)
        grades = by_cell(gradebook, Grade, of_student)
        both = []
        for name, cell in cells.items():
            before = verdict_of(old[name], grades[name].auto_score)
            now = verdict_of(cell, determine_grade(cell)[0])
            both.append(JudgedTwice(name, before, now, grades[name].manual_score))
        better = sum(one.now.points - one.before.points for one in both if one.by_hand is None) > 0
        for one in both:
            if one.by_hand is not None:
                one.counts = f"{one.by_hand:g} points, by hand"
            elif keep == "new" or (keep == "better" and better):
                one.counts = "now"
                save_grade(cells[one.test], grades[one.test], course.grader.log)
                old[one.test].outputs = cells[one.test].outputs
        changed = any(one.counts == "now" for one in both)
        gradebook.db.commit()  # which is the gradebook's to end
        if changed:
            AssignLatePenalties(parent=course.grader).preprocess(notebook, prepared.resources)
        when = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"
        about = {"when": when, "student": student, "exercise": exercise}
        course.keep_dispute(about | {"tests": [asdict(one) for one in both]})
        course.gradebook.commit()
        if changed:
            mode = page.stat().st_mode
            write_whole(page, nbformat.writes(notebook))
            page.chmod(mode)
    table = [(one.test, str(one.before), str(one.now), one.counts) for one in both]
    lines = [f"{student}, {exercise}:", table_text(("Test", "Before", "Now", "What counts"), table, width=32)]
    for event in executed.events:
        lines.append(visible(f"suspicious: {event['cell'] or 'the notebook'}: {event['what']}"))
    return "\n".join([*lines, ""]), changed


def _run(
    course: Course, submission: Submission, exercise: str, pool: Pool
) -> tuple[Prepared, Executed, list[int]]:
    """Run the notebook that has the exercise; its tests are at these places among the cells."""
    for prepared in course.read(submission):
        if problem := problem_of(prepared.notebook):
            raise SubmissionError(problem)
        tests = [cell.index for cell in prepared.cells if cell.role == "test" and cell.exercise == exercise]
        if tests:
            job = Job(submission, prepared, only=tests)
            (status := Status(1)).opened(job, submission.student, job.cells)
            list(run_all(pool, [job], course, status))
            if job.executed is None:
                raise SubmissionError(str(job.failure))
            return prepared, job.executed, tests
    raise SubmissionError(f"it has no test of {exercise}")


def known_exercise(course: Course, name: str) -> str:
    """The same name, if the assignment has tests of such an exercise. Raises GradingError if it has none."""
    with course.opened() as gradebook:
        exercises = exercise_of_each(gradebook.find_assignment(course.assignment))
    there = list(dict.fromkeys(exercises.values()))
    if name in there:
        return name
    # Perhaps a test was named in place of its exercise.
    meant = did_you_mean(exercise_of(name, there) or name, there, f"It has {', '.join(there)}.")
    raise GradingError(f"{course.assignment} has no exercise {name!r}. {meant}")


def recount(course: Course, *, apply: bool) -> list[tuple[str, str, str, str]]:
    """Count lateness as grading does, and keep that with ``apply``.

    Gives whose penalties change: the student, the hours late, and the points taken off so far and by the
    table. Raises GradingError for an unknown assignment, and where there is no table.
    """
    if not read_table(course.root / TABLE):
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
