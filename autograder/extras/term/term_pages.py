"""What the pages about the whole term show: the instructor's, and one for each student with all grades."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from ...class_grading.class_report import exercise_spreads
from ...class_grading.course import Course
from ...class_grading.gradebook import GradingError
from ...class_grading.html_page import render
from ...class_grading.results import ClassResults, Graded, read_results
from ...files import write_whole
from ...show import visible

HERE = Path(__file__).parent
# An exercise that fewer solve, or more, is perhaps not what it should be.
FEW, MANY = 0.15, 0.97
LEAST = 8  # students, before that is said


@dataclass(frozen=True)
class Term:
    """All assignments with grades, by their due dates (UTC), and the names of all students, by their ids."""

    assignments: list[ClassResults]
    due: dict[str, datetime | None]
    names: dict[str, str]

    @property
    def most(self) -> float:
        return sum(sum(results.most.values()) for results in self.assignments)

    def graded(self, results: ClassResults, student: str) -> Graded | None:
        return next((one for one in results.graded if one.student == student), None)

    def sum_of(self, student: str) -> float:
        """A student's points, less what lateness cost."""
        found = (self.graded(results, student) for results in self.assignments)
        return round(sum(one.points - one.penalty for one in found if one), 2)

    def rows(self, kind: str) -> list[tuple[str, ...]]:
        """As ``ClassResults.rows``, after the name of the assignment."""
        return [(one.assignment, *row) for one in self.assignments for row in one.rows(kind)]


def read_term(db_url: str | None = None) -> tuple[Term, Path]:
    """All assignments in the current folder, and this folder. Raises GradingError if nothing is graded."""
    with Course("", db_url, write=False) as course, course.opened() as gradebook:
        due = {one.name: one.duedate for one in gradebook.assignments}
        students = sorted(gradebook.students, key=lambda one: one.id)
        names = {one.id: _name(one.first_name, one.last_name) for one in students}
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
    return Term(found, due, names), course.root


def _name(*parts: str | None) -> str:
    """On one line, so that nobody's name adds lines to a certificate."""
    return visible(" ".join(" ".join(filter(None, parts)).split()))


def write_pages(term: Term, folder: Path) -> Path:
    """Write the instructor's page, whose path this gives, and the students' pages, below a folder."""
    html = render(
        HERE / "term.html.j2",
        term=term,
        points=[term.sum_of(student) for student in term.names],
        spreads=[(results, spread) for results in term.assignments for spread in exercise_spreads(results)],
        odd=[row for results in term.assignments for row in too_hard_or_easy(results)],
        to_grade=[(one.assignment, *row) for one in term.assignments for row in one.to_grade()],
    )
    write_whole(page := folder / "term.html", html)
    for student in term.names:
        html = render(HERE / "student.html.j2", term=term, student=student)
        write_whole(folder / "students" / f"{quote(student, safe='')}.html", html)
    return page


def too_hard_or_easy(results: ClassResults) -> Iterator[list[str]]:
    """Exercises that nearly nobody solved, or nearly everybody."""
    for spread in exercise_spreads(results):
        solved = spread.shares[0]
        if len(results.graded) >= LEAST and not FEW <= solved <= MANY:
            yield [results.assignment, spread.exercise, f"{solved:.0%} have all points"]
