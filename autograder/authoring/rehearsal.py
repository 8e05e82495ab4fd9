"""A dress rehearsal: a small class goes through the whole of nbgrader, from release to exported grades.

Every step is a real nbgrader command, run with the course's real settings in a folder of its own. The
students hand in answers of known worth, so that the points at the end can be compared with what they must be.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import nbformat

from ..command_line import Misuse, command, option
from ..show import table_text
from .answers import Answers, answers_to, expected_points, submission
from .builder import find_root
from .scratch_course import ScratchCourse

NAMES = ["ada", "bo", "chen", "dalia", "emeka", "fumi", "goran", "hana", "ines", "jonas", "kavya", "lucia"]


@command(
    "rehearsal",
    option("--students", type=int, default=12, help="how many (default: 12)"),
    option("--assignment", default="01_tensor_creation", help="default: 01_tensor_creation"),
    option("--scratch", type=Path, help="work in this new folder (default: a temporary one)"),
)
def main(students: int, assignment: str, scratch: Path | None) -> int:
    if students < 1:
        raise Misuse("a rehearsal needs one student or more")
    root = find_root()
    source = root / "solutions" / assignment / f"{assignment}.py"
    answers = answers_to(assignment, root)
    folder = scratch or Path(tempfile.mkdtemp(prefix="rehearsal-"), "course")
    folder.mkdir(parents=True)
    course = ScratchCourse(folder, root)
    names = [*NAMES, *(f"student{number}" for number in range(len(NAMES) + 1, students + 1))]
    mixes = {student: mix(answers, number) for number, student in enumerate(names[:students])}
    print(f"Rehearsal of {assignment} with {len(mixes)} students in {course.folder}", flush=True)
    course.add_assignment(source)
    run(course, assignment, answers, mixes)
    rows, right = points_table(answers, mixes, course.points(assignment))
    print("\nPoints, and the kind of answer:\n")
    print(table_text(["", *answers, "total"], rows))
    print(f"\nOne student's page: {course.page(next(iter(mixes)), assignment)}")
    print(f"All other files:    {course.folder}\n")
    print("All points are as expected." if right else "Some points are not as expected.")
    return 0 if right else 1


def mix(answers: Answers, number: int) -> dict[str, str]:
    """The kind of answer that student ``number`` gives to each exercise: all kinds take turns."""
    return {
        exercise: list(kinds)[(number + place) % len(kinds)]
        for place, (exercise, kinds) in enumerate(answers.items())
    }


def run(course: ScratchCourse, assignment: str, answers: Answers, mixes: dict[str, dict[str, str]]) -> None:
    """Take the class through nbgrader, step by step. Raises CommandError."""
    first, *others = mixes
    with step("generate_assignment: make the students' version"):
        course.nbgrader("generate_assignment", assignment)
    with step("release_assignment: put it into the exchange"):
        course.nbgrader("release_assignment", assignment)
    with step(f"fetch_assignment: {first} takes it out"):
        home = course.folder / "students"
        course.nbgrader("fetch_assignment", assignment, f"--Exchange.assignment_dir={home / first}")
        for student in others:
            shutil.copytree(home / first, home / student)
    with step(f"submit: {len(mixes)} students hand in"):
        for student, kinds in mixes.items():
            path = home / student / assignment / f"{assignment}.ipynb"
            nbformat.write(submission(nbformat.read(path, as_version=4), answers, kinds), path)
            where = f"--Exchange.assignment_dir={home / student}"
            course.nbgrader("submit", assignment, where, f"--student={student}")
    with step("collect: take the submissions out of the exchange"):
        course.nbgrader("collect", assignment)
    with step("grade: run and grade them, on all cores\n"):
        course.grade(assignment)
    with step("generate_feedback: write a page for each student"):
        course.nbgrader("generate_feedback", assignment)
    with step("release_feedback: put the pages into the exchange"):
        course.nbgrader("release_feedback", assignment)
    with step("export: write the grades to grades.csv"):
        course.nbgrader("export", f"--to={course.folder / 'grades.csv'}")


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print what is being done, and then the seconds it took: on a new line, if the title ends its own."""
    print(f"  {title:<52}", end="" if title.endswith("\n") else " ", flush=True)
    start = perf_counter()
    yield
    print(f"{perf_counter() - start:6.1f} s", flush=True)


def points_table(
    answers: Answers, mixes: dict[str, dict[str, str]], got: dict[str, dict[str, float | None]]
) -> tuple[list[list[str]], bool]:
    rows, right = [], True
    for student, kinds in mixes.items():
        points = got.get(student, {})
        row = [student]
        for exercise, kind in kinds.items():
            expected = expected_points(answers, {exercise: kind})
            most = answers[exercise]["solution"].points
            found = {test: points.get(test) for test in expected}
            row.append(f"{sum(value or 0 for value in found.values()):g} {kind}")
            for test, value in found.items():
                if not expected[test].agrees(value, most[test].high):
                    row[-1] += f" ({test}: {value}, not {expected[test]})"
                    right = False
        rows.append([*row, f"{sum(value or 0 for value in points.values()):g}"])
    return rows, right
