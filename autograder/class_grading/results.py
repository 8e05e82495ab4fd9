"""What grading an assignment gave, read from the gradebook and the autograded notebooks."""

import os
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, ValidationError, convert
from nbformat import NotebookNode
from nbgrader.api import MissingEntry, SubmittedAssignment

from ..nbgrader_plugin.points import outcomes
from ..nbgrader_plugin.submissions import TIMESTAMP
from ..roles import exercise_of, nbgrader_data
from ..show import visible
from .course import Course, Reason
from .gradebook import GradingError

Ratio = Annotated[float, Meta(gt=0, lt=1e300)]  # no infinity


@dataclass(frozen=True)
class Lap:
    """A race of one student on one device: the ratio measured, and the one asked for."""

    device: str
    ratio: Ratio
    required: Ratio
    of_limit: Ratio | None = None  # the share of the machine's limit, where one is known


@dataclass(frozen=True)
class Verdict:
    """What a test said about an answer: its points, the words of its card, and what a race measured."""

    points: float
    outcome: str
    message: str
    name: str = ""  # of the test
    laps: list[Lap] = field(default_factory=list)

    def __str__(self) -> str:
        return visible(f"{self.points:g} points, {self.outcome}: {self.message}")


@dataclass
class Graded:
    """One student's graded submission."""

    student: str
    points: float  # before ``penalty`` is taken off
    tests: list[Verdict] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    seconds: Counter[str] = field(default_factory=Counter)  # by kind: cells, tests, races, total
    noise: list[dict[str, Any]] = field(default_factory=list)
    sandboxed: list[bool] = field(default_factory=list)
    penalty: float = 0.0
    hours_late: float = 0.0
    # Tests with points by hand: these, those of the test, and whether the test gives more.
    decided: list[tuple[str, str, str, str]] = field(default_factory=list)
    # Why notebooks count 0 points, and what had been done to cells of the assignment.
    unreadable: list[tuple[str]] = field(default_factory=list)
    put_back: list[tuple[str]] = field(default_factory=list)
    # When it arrived, which counts, and what it says itself, if that is much earlier.
    arrived_later: list[tuple[str, ...]] = field(default_factory=list)
    feedback: str = ""  # the page that the student gets, from the course's folder

    def sum_of(self, tests: Collection[str]) -> float:
        """The points in these tests."""
        return sum(test.points for test in self.tests if test.name in tests)

    @property
    def undecided(self) -> list[tuple[str, str]]:
        """The tests that wait for an instructor, with the words of their cards."""
        return [(test.name, test.message) for test in self.tests if test.outcome == "undecided"]

    @property
    def suspicious(self) -> list[tuple[str, str]]:
        """Where something suspicious was seen, and what."""
        return [(str(one.get("cell") or "the notebook"), str(one.get("what", ""))) for one in self.events]


@dataclass
class ClassResults:
    """An assignment and its class: each test's most points, the grades, who has none and why.

    ``outdated`` has who is to be graded again and why, ``disputes`` what ``Course.disputes`` gives.
    """

    assignment: str
    most: dict[str, float]
    exercises: list[str]
    graded: list[Graded]
    missing: dict[str, str]
    run: dict[str, Any]
    outdated: dict[str, str] = field(default_factory=dict)
    disputes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def tests(self) -> dict[str, list[str]]:
        """The exercises that have test cells, with the names of these."""
        found: dict[str, list[str]] = {exercise: [] for exercise in self.exercises}
        for name in self.most:
            found.setdefault(exercise_of(name, self.exercises) or name, []).append(name)
        return {exercise: names for exercise, names in found.items() if names}

    def most_of(self, tests: Iterable[str]) -> float:
        return sum(self.most[name] for name in tests)

    def seconds(self, kind: str) -> float:
        """What was spent on all, of one kind."""
        return sum(graded.seconds[kind] for graded in self.graded)

    def rows(self, kind: str) -> list[tuple[str, ...]]:
        """For pages: the student, and what there is of a kind, which is an attribute of ``Graded``."""
        return [(graded.student, *row) for graded in self.graded for row in getattr(graded, kind)]

    def to_grade(self) -> list[tuple[str, str]]:
        """Who is not graded, or not by what counts now, and why."""
        return [*self.missing.items(), *self.outdated.items()]

    def judged_again(self) -> list[list[str]]:
        """Tests that were judged again: when, the old verdict and the new one, and which counts."""
        rows = []
        for dispute in self.disputes:
            for test in dispute["tests"]:
                both = (str(Verdict(**test[which])) for which in ("before", "now"))
                rows.append([dispute["student"], test["test"], dispute["when"], *both, test["counts"]])
        return rows


def read_graded(course: Course) -> ClassResults:
    """As ``read_results``. Raises GradingError where nothing is graded, too."""
    results = read_results(course)
    if not results.graded:
        what = course.assignment
        raise GradingError(f"Nothing of {what} is graded yet. Run `python -m autograder grade {what}` first.")
    return results


def read_results(course: Course) -> ClassResults:
    """Read everything. Raises GradingError as ``Course.submissions`` does."""
    submissions = course.submissions()
    reasons = {submission.student: course.reason(submission) for submission in submissions}
    run, settings = course.record(), course.directory
    most: dict[str, float] = {}
    exercises: list[str] = []
    graded, missing, outdated = [], dict(course.grader.refused), dict[str, str]()
    with course.opened() as gradebook:
        for notebook in gradebook.find_assignment(course.assignment).notebooks:
            most |= {cell.name: cell.max_score for cell in notebook.grade_cells}
            exercises += [cell.name for cell in notebook.solution_cells]
        for student, why in reasons.items():
            failed = run.get("failed", {}).get(student)
            if why is not Reason.NOT_GRADED:
                with suppress(MissingEntry):
                    found = gradebook.find_submission(course.assignment, student)
                    graded.append(_read(course, found, student))
                    folder = settings.format_path(settings.feedback_directory, student, course.assignment)
                    pages = (os.path.relpath(page, course.root) for page in Path(folder).glob("*.html"))
                    graded[-1].feedback = next(pages, "")
                    if why:
                        outdated[student] = failed or f"To be graded again, because {why}."
                    continue
            missing[student] = failed or run.get("stopped") or "Not graded yet."
    return ClassResults(course.assignment, most, exercises, graded, missing, run, outdated, course.disputes())


def verdict_of(cell: NotebookNode, points: float | None) -> Verdict:
    """What a test cell says: the first of its cards that did not pass, or else the first one."""
    cards = outcomes(cell) or [{}]
    card = next((card for card in cards if card.get("outcome") != "passed"), cards[0])
    laps = []
    for data in card.get("laps") or []:
        with suppress(ValidationError):
            laps.append(convert(data, Lap, strict=False))
    words = str(card.get("outcome", "")), str(card.get("message", ""))
    return Verdict(points or 0.0, *words, nbgrader_data(cell)["grade_id"], laps)


def _read(course: Course, found: SubmittedAssignment, student: str) -> Graded:
    """One student's grade, with what the autograded notebooks say about it."""
    grades = {grade.name: grade for book in found.notebooks for grade in book.grades}
    penalty, late = found.late_submission_penalty or 0.0, found.total_seconds_late / 3600
    result = Graded(student, found.score, penalty=penalty, hours_late=late)
    for name, grade in grades.items():
        if (by_hand := grade.manual_score) is not None:
            by_test = "none" if grade.auto_score is None else f"{grade.auto_score:g}"
            more = "the test gives more by now" if (grade.auto_score or 0) > by_hand else ""
            result.decided.append((name, f"{by_hand:g}", by_test, more))
    with suppress(OSError, UnicodeError):
        lines = (course.autograded(student) / TIMESTAMP).read_text(encoding="utf-8").splitlines()
        result.arrived_later += [tuple(map(visible, lines))] if len(lines) == 2 else []
    for notebook in course.autograded_notebooks(student):
        notes = notebook.metadata.get("autograder", {})
        result.events += notes.get("events") or []
        result.seconds.update(notes.get("seconds") or {})
        result.noise += [notes["noise"]] if notes.get("noise") else []
        result.sandboxed += [bool(notes["sandboxed"])] if "sandboxed" in notes else []
        result.unreadable += [(str(notes["problem"]),)] if notes.get("problem") else []
        result.put_back += [(str(remark),) for remark in notes.get("put_back") or []]
        for cell in notebook.cells:
            if (name := nbgrader_data(cell).get("grade_id")) in grades:
                result.tests.append(verdict_of(cell, grades[name].score))
    return result
