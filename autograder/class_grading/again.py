"""One exercise judged again, after a dispute: the command ``python -m autograder again``.

The submission runs as in grading, but only the tests of this exercise judge it. The old verdict is kept
beside the new one, the other exercises keep their points, and what was decided by hand stays.
"""

from __future__ import annotations

import difflib
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Grade, Gradebook
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import determine_grade

from ..files import write_whole
from ..nbgrader_plugin.submissions import problem_of
from ..nbgrader_plugin.verdicts import by_cell, outcomes, save_grade
from ..roles import exercise_of, nbgrader_data
from ..show import table_text, visible
from .course import Course, Submission, SubmissionError
from .engine import Job, cells_of, run_all
from .gradebook import GradingError
from .grader import Prepared
from .pool import Pool
from .progress import Status


@dataclass(frozen=True)
class Judged:
    """What a test said about an answer: its points, and the words of its card."""

    points: float
    outcome: str
    message: str

    def __str__(self) -> str:
        return visible(f"{self.points:g} points, {self.outcome}: {self.message}")


@dataclass(frozen=True)
class JudgedTwice:
    """Both verdicts of a test, and the points that somebody gave in their place."""

    test: str
    before: Judged
    now: Judged
    by_hand: float | None

    def counts(self, *, new: bool) -> str:
        """Which of them counts, if new verdicts do or do not."""
        if self.by_hand is not None:
            return f"{self.by_hand:g} points, by hand"
        return "now" if new else "before"


@dataclass(frozen=True)
class Dispute:
    """An exercise of one submission that was judged again: its tests, and what was suspicious.

    ``cells`` are the test cells with the new verdicts, by name; ``page`` is the file with the old ones.
    """

    student: str
    exercise: str
    prepared: Prepared
    page: Path
    cells: dict[str, NotebookNode]
    tests: list[JudgedTwice]
    events: list[str]

    @property
    def better(self) -> bool:
        """Whether the new verdicts give more points than the old ones, where nobody decided by hand."""
        undecided = [test for test in self.tests if test.by_hand is None]
        return sum(test.now.points for test in undecided) > sum(test.before.points for test in undecided)

    def text(self, *, new: bool) -> str:
        """Both verdicts on each test side by side, and which of them counts."""
        rows = [(test.test, str(test.before), str(test.now), test.counts(new=new)) for test in self.tests]
        table = table_text(("Test", "Before", "Now", "What counts"), rows, width=32)
        suspicious = [f"suspicious: {visible(event)}" for event in self.events]
        return "\n".join([f"{self.student}, {self.exercise}:", table, *suspicious, ""])


def judge_again(course: Course, submission: Submission, exercise: str, pool: Pool) -> Dispute:
    """Judge one exercise of a submission again; no grade changes.

    Raises GradingError, or SubmissionError where this submission cannot be judged again.
    """
    student = submission.student
    if why := course.reason(submission):
        raise SubmissionError(
            f"it is to be graded first, because {why}: python -m autograder grade {course.assignment}"
        )
    prepared, cells, tests = _with_tests(course, submission, exercise)
    job = Job(submission, prepared, cells, only=tests)
    (status := Status(1)).opened(student, job, student, job.cells)
    list(run_all(pool, [job], course, status))
    if job.executed is None:
        raise SubmissionError(str(job.failure))
    notebook = course.judged(student, prepared, job.executed)
    new = {nbgrader_data(notebook.cells[index])["grade_id"]: notebook.cells[index] for index in tests}
    page = course.autograded(student) / prepared.path.name
    old = {nbgrader_data(cell).get("grade_id"): cell for cell in nbformat.read(page, as_version=4).cells}
    with course.explained(student), Gradebook(course.db_url) as gradebook:
        grades = _grades(gradebook, prepared)
        compared = [
            JudgedTwice(
                name,
                judgement(old[name], grades[name].auto_score),
                judgement(cell, determine_grade(cell)[0]),
                grades[name].manual_score,
            )
            for name, cell in new.items()
        ]
    events = [f"{event['cell'] or 'the notebook'}: {event['what']}" for event in job.executed.events]
    return Dispute(student, exercise, prepared, page, new, compared, events)


def _with_tests(
    course: Course, submission: Submission, exercise: str
) -> tuple[Prepared, list[dict], list[int]]:
    """The notebook that has the exercise, its cells, and the places of the tests among them."""
    for prepared in course.read(submission):
        if problem := problem_of(prepared.notebook):
            raise SubmissionError(problem)
        cells = cells_of(prepared)
        tests = [cell["index"] for cell in cells if cell["role"] == "test" and cell["exercise"] == exercise]
        if tests:
            return prepared, cells, tests
    raise SubmissionError(f"it has no test of {exercise}")


def _grades(gradebook: Gradebook, prepared: Prepared) -> dict[str, Grade]:
    names = prepared.resources["nbgrader"]
    found = gradebook.find_submission_notebook(names["notebook"], names["assignment"], names["student"])
    return by_cell(gradebook, Grade, found)


def judgement(cell: NotebookNode, points: float | None) -> Judged:
    """What a test cell says: the first of its cards that did not pass, or else the first one."""
    cards = outcomes(cell)
    card = next((card for card in cards if card.get("outcome") != "passed"), (cards or [{}])[0])
    return Judged(points or 0.0, str(card.get("outcome", "")), str(card.get("message", "")))


def keep_verdicts(course: Course, dispute: Dispute, *, new: bool) -> bool:
    """Keep both verdicts; with ``new``, the new ones count where nobody decided by hand. Whether any does.

    Raises GradingError or SubmissionError where that is not possible.
    """
    changed = {test.test for test in dispute.tests if new and test.by_hand is None}
    kept = [asdict(test) | {"counts": test.counts(new=test.test in changed)} for test in dispute.tests]
    with course.explained(dispute.student):
        with Gradebook(course.db_url) as gradebook:
            grades = _grades(gradebook, dispute.prepared)
            for name in changed:
                save_grade(dispute.cells[name], grades[name], course.grader.log)
            gradebook.db.commit()  # which is the gradebook's to end
        notebook = nbformat.read(dispute.page, as_version=4)
        for cell in notebook.cells:
            test = nbgrader_data(cell).get("grade_id", "")
            if test in changed:
                cell.outputs = dispute.cells[test].outputs
        if changed:
            lateness = AssignLatePenalties(parent=course.grader)
            lateness.preprocess(notebook, dispute.prepared.resources)
        course.keep_dispute(
            {
                "when": f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC",
                "student": dispute.student,
                "exercise": dispute.exercise,
                "tests": kept,
            }
        )
        course.gradebook.commit()
        if changed:
            mode = dispute.page.stat().st_mode
            write_whole(dispute.page, nbformat.writes(notebook))
            dispute.page.chmod(mode)
    return bool(changed)


def known_exercise(course: Course, name: str) -> str:
    """The same name, if the assignment has tests of such an exercise. Raises GradingError if it has none."""
    with course.opened() as gradebook:
        notebooks = gradebook.find_assignment(course.assignment).notebooks
        answers = [cell.name for notebook in notebooks for cell in notebook.solution_cells]
        tests = [cell.name for notebook in notebooks for cell in notebook.grade_cells]
    there = list(dict.fromkeys(exercise_of(test, answers) or test for test in tests))
    if name in there:
        return name
    # Perhaps a test was named in place of its exercise.
    close = (
        [exercise_of(name, there)] if exercise_of(name, there) else difflib.get_close_matches(name, there, 1)
    )
    hint = f"Did you mean {close[0]}?" if close else f"It has {', '.join(there)}."
    raise GradingError(f"{course.assignment} has no exercise {name!r}. {hint}")
