"""An assignment's grades, read from the gradebook: what every platform gets."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry, Student
from nbgrader.plugins import ExportPlugin
from traitlets import Bool

from ...roles import exercise_of
from ...show import first_of

REMARKS = {
    "absent": "handed in nothing, and have no points here",
    "ungraded": "are not graded yet, and have no points here",
    "unsure": "have a test that waits for your decision; their points are those so far",
}


class ExportError(Exception):
    """Grades cannot be exported; the message says why and what to do."""


@dataclass(frozen=True)
class Grades:
    """The columns: the assignment and, if asked for, its exercises; and who has points, one for each column.

    Those of the assignment are less the penalty for being late; those of exercises are without it. Sentences
    about those who stand out are in ``remarks``.
    """

    columns: list[str]
    points: dict[Student, list[float]]
    remarks: list[str]


def read_grades(
    gradebook: Gradebook,
    assignment: str,
    handed_in: Collection[str],
    students: Collection[str] = (),
    *,
    by_exercise: bool = False,
) -> Grades:
    """Everybody's grades in one assignment, or those of some students.

    ``handed_in``: who has a submission, graded or not. Raises ExportError for an assignment that the
    gradebook does not know.
    """
    try:
        notebooks = gradebook.find_assignment(assignment).notebooks
    except MissingEntry:
        raise ExportError(
            f"The gradebook has no assignment {assignment!r}. It has: {_names(gradebook)}. Choose one with "
            "--assignment \"['NAME']\"."
        ) from None
    answers = [cell.name for notebook in notebooks for cell in notebook.solution_cells]
    tests = [cell.name for notebook in notebooks for cell in notebook.grade_cells]
    exercises = {test: exercise_of(test, answers) or test for test in tests}
    points: dict[Student, list[float]] = {}
    standing_out: dict[str, list[str]] = {kind: [] for kind in REMARKS}
    for student in gradebook.students:
        if students and student.id not in students:
            continue
        try:
            submission = gradebook.find_submission(assignment, student.id)
        except MissingEntry:
            standing_out["ungraded" if student.id in handed_in else "absent"].append(student.id)
            continue
        of_exercise = dict.fromkeys(exercises.values(), 0.0)
        for grade in (grade for notebook in submission.notebooks for grade in notebook.grades):
            of_exercise[exercises[grade.name]] += grade.score or 0.0
        whole = max(0.0, submission.score - (submission.late_submission_penalty or 0.0))
        points[student] = [whole, *(of_exercise.values() if by_exercise else ())]
        if submission.needs_manual_grade:
            standing_out["unsure"].append(student.id)
    more = dict.fromkeys(exercises.values()) if by_exercise else ()
    return Grades(
        [assignment, *(f"{assignment}: {name}" for name in more)],
        points,
        [f"{len(names)} {REMARKS[kind]}: {first_of(names)}" for kind, names in standing_out.items() if names],
    )


def _names(gradebook: Gradebook) -> str:
    return ", ".join(one.name for one in gradebook.assignments) or "none"


class Exporter(ExportPlugin):
    """What the exporters share: which assignment, whose grades, and the columns."""

    by_exercise = Bool(False, help="one more column for each exercise").tag(config=True)

    def export(self, gradebook: Gradebook) -> None:
        """Called by ``nbgrader export``; ends it with one sentence where that is not possible."""
        try:
            self.write(self.grades(gradebook))
        except (ExportError, OSError) as error:
            self.log.error("%s", error)
            sys.exit(1)

    def write(self, grades: Grades) -> None:
        """Export the grades. Raises ExportError."""
        raise NotImplementedError

    def grades(self, gradebook: Gradebook) -> Grades:
        """Those that the command line asks for. Raises ExportError unless it names one assignment."""
        if len(self.assignment) != 1:
            raise ExportError(
                "Name one assignment, as in --assignment \"['NAME']\". The gradebook has: "
                f"{_names(gradebook)}."
            )
        (assignment,) = map(str, self.assignment)
        course = self.parent.coursedir
        submitted = Path(course.format_path(course.submitted_directory, "*", assignment))
        handed_in = {path.parent.name for path in submitted.parents[1].glob(f"*/{assignment}")}
        chosen = set(map(str, self.student))
        found = read_grades(gradebook, assignment, handed_in, chosen, by_exercise=self.by_exercise)
        for sentence in found.remarks:
            self.log.warning("%s", sentence)
        return found
