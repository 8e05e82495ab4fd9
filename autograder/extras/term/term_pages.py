"""Pages about the whole term: one for the instructor, and one for each student with all grades so far.

What the pages show is worked out here; ``term.html.j2`` and ``student.html.j2`` say how.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import mean
from urllib.parse import quote

from ...class_grading.class_report import exercise_spreads
from ...class_grading.course import Course
from ...class_grading.gradebook import GradingError
from ...class_grading.html_page import render, write_page
from ...class_grading.results import ClassResults, Graded, read_results
from ...class_grading.status import length

HERE = Path(__file__).parent
# An exercise that fewer solve, or more, is perhaps not what it should be.
FEW, MANY = 0.15, 0.97
LEAST = 8  # students, before that is said


@dataclass(frozen=True)
class Term:
    """All assignments with grades, in the order of their due dates (UTC), and everybody who is enrolled."""

    assignments: list[ClassResults]
    due: dict[str, datetime | None]
    students: list[str]

    @property
    def most(self) -> float:
        """The most points that there are."""
        return sum(sum(results.most.values()) for results in self.assignments)

    def graded(self, results: ClassResults, student: str) -> Graded | None:
        """A student's grade in an assignment, if there is one."""
        return next((one for one in results.graded if one.student == student), None)

    def sum_of(self, student: str) -> float:
        """A student's points, less what lateness cost."""
        found = (self.graded(results, student) for results in self.assignments)
        return round(sum(one.points - one.penalty for one in found if one), 2)


def read_term(db_url: str | None = None) -> tuple[Term, Path]:
    """All assignments of the course in the current folder, and that folder.

    Raises GradingError where nothing is graded yet.
    """
    with Course("", db_url, write=False) as course, course.opened() as gradebook:
        due = {one.name: one.duedate for one in gradebook.assignments}
        students = sorted(student.id for student in gradebook.students)
    found = []
    for name in sorted(due, key=lambda name: (due[name] or datetime.max, name)):
        with Course(name, db_url, write=False) as course:
            try:
                results = read_results(course)
            except GradingError:  # nobody has handed it in
                continue
            if results.graded:
                found.append(results)
    if not found:
        raise GradingError("Nothing is graded yet. Run `python -m autograder grade ASSIGNMENT` first.")
    return Term(found, due, students), course.root


def write_pages(term: Term, folder: Path) -> list[Path]:
    """Write the instructor's page and the students' pages below a folder. Raises GradingError."""
    pages = {folder / "term.html": term_page(term)}
    for student in term.students:
        pages[folder / "students" / f"{quote(student, safe='')}.html"] = student_page(term, student)
    for path, html in pages.items():
        write_page(path, html)
    return list(pages)


def term_page(term: Term) -> str:
    """The instructor's page."""
    sums = {student: term.sum_of(student) for student in term.students}

    def of_all(kind: str) -> list[tuple[str, ...]]:
        return [(one.assignment, *row) for one in term.assignments for row in one.rows(kind)]

    return render(
        HERE / "term.html.j2",
        facts=[
            (str(len(term.students)), "students"),
            (str(len(term.assignments)), "assignments graded"),
            (f"{mean(sums.values()):.1f} of {term.most:g}" if sums else "none", "points, mean"),
        ],
        names=[results.assignment for results in term.assignments],
        rows=[
            [student, *(in_words(term, results, student) for results in term.assignments), f"{of:g}"]
            for student, of in sums.items()
        ],
        assignments=[
            [
                results.assignment,
                f"{due:%Y-%m-%d %H:%M} UTC" if (due := term.due[results.assignment]) else "",
                f"{len(results.graded)} of {len(term.students)}",
                str(sum(graded.hours_late > 0 for graded in results.graded)),
                f"{mean(graded.points for graded in results.graded):.1f} of {sum(results.most.values()):g}",
                *(length(results.seconds(kind)) for kind in ("tests", "races")),
            ]
            for results in term.assignments
        ],
        exercises=[row for results in term.assignments for row in exercise_rows(results)],
        odd=[row for results in term.assignments for row in too_hard_or_easy(results)],
        to_grade=[(one.assignment, *row) for one in term.assignments for row in one.to_grade()],
        suspicious=of_all("suspicious"),
        by_hand=of_all("decided"),
    )


def in_words(term: Term, results: ClassResults, student: str) -> str:
    """One field of the large table."""
    graded = term.graded(results, student)
    if graded is None:
        return "not graded" if student in results.missing else "–"
    words = f"{round(graded.points - graded.penalty, 2):g}"
    if graded.hours_late > 0:
        words += f" (late {graded.hours_late:.0f} h{f', −{graded.penalty:g}' if graded.penalty else ''})"
    return words


def exercise_rows(results: ClassResults) -> Iterator[list[str]]:
    """What each exercise cost the class in points, and who solved it."""
    for spread in exercise_spreads(results):
        lost = (spread.most - spread.mean) * sum(spread.counts)
        solved, _, none = (f"{share:.0%}" for share in spread.shares)
        points = f"{spread.mean:.2f} of {spread.most:g}"
        yield [results.assignment, spread.exercise, points, f"{lost:.1f}", solved, none]


def too_hard_or_easy(results: ClassResults) -> Iterator[list[str]]:
    """Exercises that nearly nobody solved, or nearly everybody."""
    for spread in exercise_spreads(results):
        solved = spread.shares[0]
        if len(results.graded) >= LEAST and not FEW <= solved <= MANY:
            yield [results.assignment, spread.exercise, f"{solved:.0%} have all points"]


def student_page(term: Term, student: str) -> str:
    """A student's own page: all grades so far, and nothing about anybody else."""
    parts = []
    for results in term.assignments:
        rows = []
        if graded := term.graded(results, student):
            for exercise in results.exercises:
                if names := results.tests_of(exercise):
                    most = sum(results.most[name] for name in names)
                    rows.append([exercise, f"{graded.sum_of(names):g}", f"{most:g}"])
            if graded.penalty:
                rows.append([f"late by {graded.hours_late:.1f} hours", f"−{graded.penalty:g}", ""])
        parts.append((results.assignment, in_words(term, results, student), rows))
    return render(
        HERE / "student.html.j2",
        student=student,
        facts=[(f"{term.sum_of(student):g} of {term.most:g}", "points so far")],
        parts=parts,
    )
