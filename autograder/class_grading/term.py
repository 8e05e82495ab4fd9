"""Pages about the whole term: one for the instructor, and one for each student with all grades so far.

What the pages show is worked out here; ``term.html.j2`` and ``student.html.j2`` say how.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import mean
from urllib.parse import quote

from nbgrader.api import Gradebook
from sqlalchemy.exc import SAWarning

from ..files import write_whole
from .course import Course, GradingError
from .progress_bar import length
from .report import Listing, exercise_spreads, render
from .results import ClassResults, Graded, read_results

# An exercise that fewer solve, or more, is perhaps not what it should be.
FEW, MANY = 0.15, 0.97
LEAST = 8  # students, before that is said


@dataclass(frozen=True)
class Term:
    """All assignments with grades, in the order of their due dates (UTC), and everybody who is enrolled."""

    assignments: list[ClassResults]
    due: dict[str, datetime | None]
    students: list[str]

    def graded(self, results: ClassResults, student: str) -> Graded | None:
        """A student's grade in an assignment, if there is one."""
        return next((one for one in results.graded if one.student == student), None)


def read_term(db_url: str | None = None) -> tuple[Term, Path]:
    """All assignments of the course in the current folder, and that folder.

    Raises GradingError where nothing is graded yet.
    """
    with Course("", db_url, write=False) as course:
        root, url = course.root, course.db_url
        with course.gradebook.shared(), Gradebook(url) as gradebook:
            due = {one.name: one.duedate for one in gradebook.assignments}
            students = sorted(student.id for student in gradebook.students)
    found = []
    for name in due:
        with Course(name, db_url, write=False) as course:
            try:
                results = read_results(course)
            except GradingError:  # nobody has handed it in
                continue
            if results.graded:
                found.append(results)
    if not found:
        raise GradingError("Nothing is graded yet. Run `python -m autograder grade ASSIGNMENT` first.")
    found.sort(key=lambda results: (due[results.assignment] or datetime.max, results.assignment))
    return Term(found, due, students), root


def term_page(term: Term) -> str:
    """The instructor's page as HTML, with nothing to load from elsewhere."""
    most = sum(sum(results.most.values()) for results in term.assignments)
    sums = {student: sum_of(term, student) for student in term.students}
    return render(
        "term.html.j2",
        facts=[
            (str(len(term.students)), "students"),
            (str(len(term.assignments)), "assignments graded"),
            (f"{mean(sums.values()):.1f} of {most:g}" if sums else "none", "points, mean"),
        ],
        heads=["Student", *(results.assignment for results in term.assignments), "Sum"],
        rows=[
            [
                student,
                *(in_words(term, results, student) for results in term.assignments),
                f"{sums[student]:g}",
            ]
            for student in term.students
        ],
        assignments=[
            [
                results.assignment,
                f"{due:%Y-%m-%d %H:%M} UTC" if (due := term.due[results.assignment]) else "",
                f"{len(results.graded)} of {len(term.students)}",
                str(sum(graded.hours_late > 0 for graded in results.graded)),
                f"{mean(graded.points for graded in results.graded):.1f} of {sum(results.most.values()):g}",
                *(
                    length(sum(graded.seconds.get(kind, 0) for graded in results.graded))
                    for kind in ("tests", "races")
                ),
            ]
            for results in term.assignments
        ],
        exercises=exercise_rows(term),
        listings=to_look_at(term),
    )


def sum_of(term: Term, student: str) -> float:
    """A student's sum, less what lateness cost."""
    found = (term.graded(results, student) for results in term.assignments)
    return round(sum(one.points - one.penalty for one in found if one), 2)


def in_words(term: Term, results: ClassResults, student: str) -> str:
    """One field of the large table."""
    graded = term.graded(results, student)
    if graded is None:
        return "not graded" if student in results.missing else "–"
    words = f"{round(graded.points - graded.penalty, 2):g}"
    if graded.hours_late > 0:
        words += f" (late {graded.hours_late:.0f} h{f', −{graded.penalty:g}' if graded.penalty else ''})"
    return words


def exercise_rows(term: Term) -> list[list[str]]:
    """What each exercise cost the class in points, and who solved it."""
    rows = []
    for results in term.assignments:
        for spread in exercise_spreads(results):
            lost = (spread.most - spread.mean) * sum(spread.counts)
            solved, _, none = spread.shares
            rows.append(
                [
                    results.assignment,
                    spread.exercise,
                    f"{spread.mean:.2f} of {spread.most:g}",
                    f"{lost:.1f}",
                    f"{solved:.0%}",
                    f"{none:.0%}",
                ]
            )
    return rows


def to_look_at(term: Term) -> list[Listing]:
    """What an instructor should look at, over the whole term."""
    broken, suspicious, by_hand, missing = [], [], [], []
    for results in term.assignments:
        name = results.assignment
        for spread in exercise_spreads(results):
            solved = spread.shares[0]
            if len(results.graded) >= LEAST and (solved < FEW or solved > MANY):
                broken.append([name, spread.exercise, f"{solved:.0%} have all points"])
        for graded in results.graded:
            suspicious += [
                [name, graded.student, str(event.get("cell") or "the notebook"), str(event.get("what", ""))]
                for event in graded.events
            ]
            by_hand += [
                [name, graded.student, cell, "none" if auto is None else f"{auto:g}", f"{manual:g}"]
                for cell, (auto, manual) in graded.by_hand.items()
            ]
        missing += [[name, student, why] for student, why in results.to_grade().items()]
    return [
        Listing(
            "Exercises that nearly nobody solved, or nearly everybody",
            ["Assignment", "Exercise", "Solved"],
            broken,
            "No exercise is far too hard or far too easy for this class.",
            "Perhaps a test or the text of such an exercise is wrong.",
        ),
        Listing(
            "Not graded, or to be graded again",
            ["Assignment", "Student", "Why"],
            missing,
            "Everybody who handed in is graded.",
        ),
        Listing(
            "Suspicious",
            ["Assignment", "Student", "Where", "What"],
            suspicious,
            "Nothing suspicious was seen.",
        ),
        Listing(
            "Decided by hand",
            ["Assignment", "Student", "Test", "Points by the test", "Points given"],
            by_hand,
            "No points were given by hand.",
        ),
    ]


def student_page(term: Term, student: str) -> str:
    """A student's own page: all grades so far, and nothing about anybody else."""
    parts = []
    for results in term.assignments:
        graded = term.graded(results, student)
        rows = []
        if graded:
            points = {test.name: test.points for test in graded.tests}
            for exercise in results.exercises:
                names = results.tests_of(exercise)
                if names:
                    got, most = (
                        sum(found.get(name, 0) for name in names) for found in (points, results.most)
                    )
                    rows.append([exercise, f"{got:g}", f"{most:g}"])
            if graded.penalty:
                rows.append([f"late by {graded.hours_late:.1f} hours", f"−{graded.penalty:g}", ""])
        parts.append((results.assignment, in_words(term, results, student), rows))
    most = sum(sum(results.most.values()) for results in term.assignments)
    return render(
        "student.html.j2",
        student=student,
        facts=[(f"{sum_of(term, student):g} of {most:g}", "points so far")],
        parts=parts,
    )


def write_pages(term: Term, folder: Path) -> list[Path]:
    """Write the instructor's page and the students' pages below a folder. Raises GradingError."""
    pages = {folder / "term.html": term_page(term)}
    for student in term.students:
        pages[folder / "students" / f"{quote(student, safe='')}.html"] = student_page(term, student)
    try:
        for path, text in pages.items():
            write_whole(path, text)
    except OSError as error:
        raise GradingError(f"The pages cannot be written: {error}.") from None
    return list(pages)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages; 0 if that was possible, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m autograder term",
        description="Write a page about the whole term, and one for each student, into the course's folder.",
    )
    parser.add_argument("--db", metavar="URL", help="the gradebook (default: the one in nbgrader_config.py)")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore", SAWarning)
    try:
        term, root = read_term(options.db)
        first, *students = write_pages(term, root / "reports")
    except GradingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{first}, and a page for each of {len(students)} students in {first.parent / 'students'}")
    return 0
