"""A course in a folder of its own: the real settings and assignments, with private students and grades.

In one a class is rehearsed: every step is a real nbgrader command, and the students hand in answers of known
worth, so that the points at the end can be compared with what they must be.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from ..command_line import CommandError, Misuse, command, option
from ..show import table_text
from .answers import Answers, answers_to, submission
from .builder import build, find_root, told


class ScratchCourse:
    """A folder in which nbgrader commands run with the course's own ``nbgrader_config.py``.

    The gradebook, the exchange and nbgrader's cache are in this folder, too; the checkout stays as it is.
    ``root`` is the checkout that has the real settings; a folder that has settings of its own needs none.
    ``environment`` is what the commands find in theirs beside this process's own.
    """

    def __init__(self, folder: Path, root: Path | None = None) -> None:
        self.folder = folder.resolve()
        self.log = self.folder / "nbgrader.log"
        # The settings of whoever runs this must not mix with the course's.
        self.environment = {"JUPYTER_CONFIG_DIR": str(self.folder / "jupyter")}
        if root is not None:
            places = {name: str(self.folder / name) for name in ("exchange", "cache")}
            for place in places.values():
                Path(place).mkdir(parents=True, exist_ok=True)
            form = Path(__file__).with_name("scratch_config.txt").read_text(encoding="utf-8")
            settings = form.format(root=str(root.resolve()), folder=str(self.folder), **places)
            (self.folder / "nbgrader_config.py").write_text(settings, encoding="utf-8")

    def add_assignment(self, source: Path) -> str:
        """Build an assignment's notebook from its script into this course; gives the assignment's name."""
        folder = self.folder / "solutions" / source.stem
        folder.mkdir(parents=True)
        nbformat.write(build(source), folder / f"{source.stem}.ipynb")
        return source.stem

    def nbgrader(self, *arguments: str) -> str:
        """Run one nbgrader command here; gives what it printed. Raises CommandError if it fails."""
        return self._run("nbgrader", *arguments, stderr=subprocess.STDOUT)

    def grade(self, assignment: str, *options: str) -> None:
        """Grade a class with the course's own command; its progress stays in sight. Raises CommandError."""
        self._run("autograder", "grade", assignment, *options)

    def _run(self, *words: str, stderr: int | None = None) -> str:
        command, environment = [sys.executable, "-m", *words], {**os.environ, **self.environment}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True
        )
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(words)}\n{done.stdout}\n")
        if done.returncode:
            end = "\n".join(done.stdout.splitlines()[-15:])
            raise CommandError(f"{' '.join(words)} failed; {self.log} has all, and last:\n{end}")
        return done.stdout

    def released(self, assignment: str) -> NotebookNode:
        return nbformat.read(self.folder / "exercises" / assignment / f"{assignment}.ipynb", as_version=4)

    @property
    def db_url(self) -> str:
        """Where the gradebook is, unless the settings name another."""
        return f"sqlite:///{self.folder / 'gradebook.db'}"

    def points(self, assignment: str, db_url: str | None = None) -> dict[str, dict[str, float | None]]:
        """The points in the gradebook: student → test cell → points (None where nothing was recorded)."""
        from nbgrader.api import Gradebook

        with Gradebook(db_url or self.db_url) as gradebook:
            score = lambda grade: None if grade.auto_score is None else grade.score
            return {
                one.student_id: {grade.name: score(grade) for book in one.notebooks for grade in book.grades}
                for one in gradebook.assignment_submissions(assignment)
            }

    def page(self, student: str, assignment: str) -> Path:
        return self.folder / "feedback" / student / assignment / f"{assignment}.html"


@command(
    "rehearsal",
    option("--students", type=int, default=12, help="how many (default: 12)"),
    option("--assignment", default="01_tensor_creation", help="default: 01_tensor_creation"),
    option("--scratch", type=Path, help="work in this new folder (default: a temporary one)"),
)
def rehearsal(students: int, assignment: str, scratch: Path | None) -> int:
    if students < 1:
        raise Misuse("a rehearsal needs one student or more")
    root = find_root()
    answers = answers_to(assignment, root)
    folder = scratch or Path(tempfile.mkdtemp(prefix="rehearsal-"), "course")
    folder.mkdir(parents=True)
    course = ScratchCourse(folder, root)
    mixes = {f"student{number + 1}": mix(answers, number) for number in range(students)}
    print(f"Rehearsal of {assignment} with {len(mixes)} students in {course.folder}", flush=True)
    course.add_assignment(root / "solutions" / assignment / f"{assignment}.py")
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
            expected, most = (answers[exercise][one].points for one in (kind, "solution"))
            found = {test: points.get(test) for test in expected}
            row.append(f"{sum(value or 0 for value in found.values()):g} {kind}")
            for test, value in found.items():
                if not expected[test].agrees(value, most[test].high):
                    row[-1] += f" ({test}: {value}, not {expected[test]})"
                    right = False
        rows.append([*row, f"{sum(value or 0 for value in points.values()):g}"])
    return rows, right
