"""What grading an assignment gave, read from the gradebook and the autograded notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry

from ..judging.outcome import MIME
from ..roles import exercise_of
from .course import Course
from .reasons import NOT_GRADED


@dataclass(frozen=True)
class Lap:
    """A race of one student on one device: the ratio measured, the one asked for, and the share of the
    machine's limit, where one is known.
    """

    device: str
    ratio: float
    required: float
    of_limit: float | None = None


@dataclass
class GradedTest:
    """One test cell of one student: its points, and what its card says."""

    name: str
    points: float
    outcome: str
    message: str
    laps: list[Lap] = field(default_factory=list)


@dataclass
class Graded:
    """One student's graded submission."""

    student: str
    points: float  # before ``penalty`` is taken off
    tests: list[GradedTest] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    noise: list[dict[str, Any]] = field(default_factory=list)
    sandboxed: list[bool] = field(default_factory=list)
    penalty: float = 0.0
    hours_late: float = 0.0
    # Test -> the points that it gave, and those that somebody gave in their place.
    by_hand: dict[str, tuple[float | None, float]] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)  # what was wrong with notebooks that count 0 points
    put_back: list[str] = field(default_factory=list)  # what had been done to cells of the assignment


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

    def tests_of(self, exercise: str) -> list[str]:
        """The names of the test cells of an exercise."""
        return [name for name in self.most if (exercise_of(name, self.exercises) or name) == exercise]

    def to_grade(self) -> dict[str, str]:
        """Who is not graded, or not by what counts now, and why."""
        failed = self.run.get("failed", {})
        return self.missing | {
            student: failed.get(student) or f"To be graded again, because {why}."
            for student, why in self.outdated.items()
        }


def read_results(course: Course) -> ClassResults:
    """Read everything. Raises GradingError as ``Course.submissions`` does."""
    submissions = course.submissions()
    reasons = {submission.student: course.reason(submission) for submission in submissions}
    run = course.record()
    most: dict[str, float] = {}
    exercises: list[str] = []
    graded, missing, outdated = [], dict(course.refused), dict[str, str]()
    with course.gradebook.shared(), Gradebook(course.db_url) as gradebook:
        for notebook in gradebook.find_assignment(course.assignment).notebooks:
            most |= {cell.name: cell.max_score for cell in notebook.grade_cells}
            exercises += [cell.name for cell in notebook.solution_cells]
        for student, why in reasons.items():
            if why != NOT_GRADED:
                with suppress(MissingEntry):
                    found = gradebook.find_submission(course.assignment, student)
                    grades = [grade for book in found.notebooks for grade in book.grades]
                    scores = {grade.name: grade.score for grade in grades}
                    read = _read(course.autograded(student), found.score, scores, student)
                    read.penalty = found.late_submission_penalty or 0.0
                    read.hours_late = found.total_seconds_late / 3600
                    read.by_hand = {
                        grade.name: (grade.auto_score, grade.manual_score)
                        for grade in grades
                        if grade.manual_score is not None
                    }
                    graded.append(read)
                    if why:
                        outdated[student] = why
                    continue
            missing[student] = run.get("failed", {}).get(student) or run.get("stopped") or "Not graded yet."
    exercises += [name for name in most if not exercise_of(name, exercises)]
    return ClassResults(course.assignment, most, exercises, graded, missing, run, outdated, course.disputes())


def _read(folder: Path, points: float, scores: dict[str, float], student: str) -> Graded:
    """One student's grade, with what the autograded notebooks say about it."""
    result = Graded(student, points)
    for path in sorted(folder.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        notes = notebook["metadata"].get("autograder", {})
        result.events += notes.get("events") or []
        for name, seconds in (notes.get("seconds") or {}).items():
            result.seconds[name] = result.seconds.get(name, 0) + seconds
        result.noise += [notes["noise"]] if notes.get("noise") else []
        result.sandboxed += [bool(notes["sandboxed"])] if "sandboxed" in notes else []
        result.unreadable += [str(notes["problem"])] if notes.get("problem") else []
        result.put_back += [str(remark) for remark in notes.get("put_back") or []]
        for cell in notebook["cells"]:
            name = cell["metadata"].get("nbgrader", {}).get("grade_id")
            if name in scores:
                card = next(_cards(cell), {})
                laps = [lap for data in card.get("laps") or [] if (lap := _lap(data))]
                word, message = str(card.get("outcome", "")), str(card.get("message", ""))
                result.tests.append(GradedTest(name, scores[name] or 0, word, message, laps))
    return result


def _cards(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for output in cell.get("outputs", []):
        card = output.get("data", {}).get(MIME)
        if isinstance(card, dict):
            yield card


def _lap(data: dict[str, Any]) -> Lap | None:
    with suppress(KeyError, TypeError, ValueError):
        device, ratio, required = str(data["device"]), float(data["ratio"]), float(data["required"])
        share = data.get("of_limit")
        of_limit = float(share) if isinstance(share, (int, float)) and 0 < share < inf else None
        lap = Lap(device, ratio, required, of_limit)
        return lap if 0 < lap.ratio < inf and 0 < lap.required < inf else None
    return None
