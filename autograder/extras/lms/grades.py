"""An assignment's grades, read from the gradebook: what every platform gets."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import ExportPlugin
from traitlets import Bool

from ...roles import exercise_of
from ...show import first_of


class ExportError(Exception):
    """Grades cannot be exported; the message says why and what to do."""


@dataclass(frozen=True)
class Grade:
    """One student's grade: ``points`` less the penalty for being late, and each exercise's without it.

    ``points`` is None, and ``exercises`` empty, where there is nothing to export.
    """

    student: str
    first_name: str
    last_name: str
    email: str
    points: float | None
    exercises: dict[str, float]


@dataclass(frozen=True)
class Grades:
    """An assignment's grades, the most points of the whole and of each exercise, and who stands out.

    Those of ``absent`` handed in nothing and of ``ungraded`` are still to be graded: neither has points. The
    points of ``unsure`` are there, but a test waits for a decision by hand.
    """

    assignment: str
    most: float
    most_by_exercise: dict[str, float]
    students: list[Grade]
    absent: list[str]
    ungraded: list[str]
    unsure: list[str]

    def columns(self, by_exercise: bool) -> dict[str, float]:
        """The columns' names, and the most points of each: the assignment, and its exercises if asked for."""
        found = {self.assignment: self.most}
        if by_exercise:
            found |= {f"{self.assignment}: {name}": most for name, most in self.most_by_exercise.items()}
        return found

    def values(self, grade: Grade, by_exercise: bool) -> list[float | None]:
        """One student's points, in the order of the columns."""
        found: list[float | None] = [grade.points]
        if by_exercise:
            found += [grade.exercises.get(name) for name in self.most_by_exercise]
        return found

    def remarks(self) -> list[str]:
        """Sentences for the instructor about those who stand out."""
        sentences = {
            "handed in nothing, and have no points here": self.absent,
            "are not graded yet, and have no points here": self.ungraded,
            "have a test that waits for your decision; their points are those so far": self.unsure,
        }
        return [f"{len(names)} {rest}: {first_of(names)}" for rest, names in sentences.items() if names]


def read_grades(
    gradebook: Gradebook, assignment: str, handed_in: Iterable[str], students: Iterable[str] = ()
) -> Grades:
    """Everybody's grades in one assignment, or those of some students.

    ``handed_in``: who has a submission, graded or not. Raises ExportError for an assignment that the
    gradebook does not know.
    """
    try:
        known = gradebook.find_assignment(assignment)
    except MissingEntry:
        there = ", ".join(one.name for one in gradebook.assignments) or "none"
        raise ExportError(
            f"The gradebook has no assignment {assignment!r}. It has: {there}. Choose one with "
            "--assignment \"['NAME']\"."
        ) from None
    most: dict[str, float] = {}
    exercises = [cell.name for notebook in known.notebooks for cell in notebook.solution_cells]
    for notebook in known.notebooks:
        for cell in notebook.grade_cells:
            name = exercise_of(cell.name, exercises) or cell.name
            most[name] = most.get(name, 0.0) + cell.max_score
    waiting, chosen = set(handed_in), set(students)
    found = Grades(assignment, known.max_score, most, [], [], [], [])
    for student in gradebook.students:
        if chosen and student.id not in chosen:
            continue
        points, by_exercise = None, dict[str, float]()
        try:
            submission = gradebook.find_submission(assignment, student.id)
        except MissingEntry:
            (found.ungraded if student.id in waiting else found.absent).append(student.id)
        else:
            points = max(0.0, submission.score - (submission.late_submission_penalty or 0.0))
            by_exercise = dict.fromkeys(most, 0.0)
            for notebook in submission.notebooks:
                for grade in notebook.grades:
                    by_exercise[exercise_of(grade.name, exercises) or grade.name] += grade.score or 0.0
            if submission.needs_manual_grade:
                found.unsure.append(student.id)
        names = (student.first_name or "", student.last_name or "", student.email or "")
        found.students.append(Grade(student.id, *names, points, by_exercise))
    return found


class Exporter(ExportPlugin):
    """What the exporters share: which assignment, whose grades, and the columns."""

    by_exercise = Bool(False, help="one more column for each exercise").tag(config=True)

    def export(self, gradebook: Gradebook) -> None:
        """Called by ``nbgrader export``; ends it with one sentence where that is not possible."""
        try:
            self.write(gradebook)
        except (ExportError, OSError) as error:
            self.log.error("%s", error)
            sys.exit(1)

    def write(self, gradebook: Gradebook) -> None:
        """Export the grades. Raises ExportError."""
        raise NotImplementedError

    def grades(self, gradebook: Gradebook) -> Grades:
        """Those that the command line asks for. Raises ExportError unless it names one assignment."""
        if len(self.assignment) != 1:
            there = ", ".join(one.name for one in gradebook.assignments) or "none"
            raise ExportError(
                f"Name one assignment, as in --assignment \"['NAME']\". The gradebook has: {there}."
            )
        (assignment,) = map(str, self.assignment)
        course = self.parent.coursedir
        submitted = Path(course.format_path(course.submitted_directory, "*", assignment))
        handed_in = [path.parent.name for path in submitted.parents[1].glob(f"*/{assignment}")]
        found = read_grades(gradebook, assignment, handed_in, map(str, self.student))
        for sentence in found.remarks():
            self.log.warning("%s", sentence)
        return found
