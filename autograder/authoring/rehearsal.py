"""A dress rehearsal: a small class goes through the whole of nbgrader, from release to exported grades.

Every step is a real nbgrader command, run with the course's real settings in a folder of its own. The
students hand in answers of known worth, so that the points at the end can be compared with what they must be.
"""

import shutil
import tempfile
from functools import partial
from pathlib import Path

import nbformat

from ..command_line import Misuse, command, option
from ..show import table_text
from .answers import Answers, answers_to, expected_points, submission
from .builder import find_root, told
from .scratch_course import ScratchCourse


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
    mixes = {f"student{number + 1}": mix(answers, number) for number in range(students)}
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
    step = partial(told, failed=[])  # what goes wrong here ends it

    def nbgrader(command: str, about: str) -> None:
        with step(f"{command}: {about}"):
            course.nbgrader(command, assignment)

    nbgrader("generate_assignment", "make the students' version")
    nbgrader("release_assignment", "put it into the exchange")
    first, *others = mixes
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
    nbgrader("collect", "take the submissions out of the exchange")
    with step("grade: run and grade them, on all cores\n"):
        course.grade(assignment)
    nbgrader("generate_feedback", "write a page for each student")
    nbgrader("release_feedback", "put the pages into the exchange")
    with step("export: write the grades to grades.csv"):
        course.nbgrader("export", f"--to={course.folder / 'grades.csv'}")


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
