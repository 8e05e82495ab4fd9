"""A small class for the tests of the engine, and its gradebook."""

import io
import os
import resource
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from fcntl import LOCK_EX, flock
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps import NbGrader
from pretend_class import FULL, answered, hand_in
from programs import run
from repository import ROOT

from autograder.authoring.scratch_course import ScratchCourse
from autograder.nbgrader_plugin.entries import utc
from autograder.sandbox import PlannedCell

INBOUND = Path("exchange/fast-pytorch/inbound")
STUDENTS = ("ada", "bo", "chen", "dalia", "emeka", "fumi")
Says = Callable[..., str]  # the fixture of that name
TRAPS = Path(__file__).parents[1] / "adversaries" / "traps.py"


def built_once(name: str, build: Callable[[Path], object]) -> Path:
    """A folder that whoever comes first builds, for all processes of a run of the tests."""
    shared = Path(os.environ["SHARED_BY_ALL_TESTS"])
    with (shared / f"{name}.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not (shared / name).exists():
            shutil.rmtree(part := shared / f"{name}.part", ignore_errors=True)
            build(part)
            part.rename(shared / name)
    return shared / name


def copied(template: Path, folder: Path) -> ScratchCourse:
    shutil.copytree(template, folder, dirs_exist_ok=True)
    return ScratchCourse(folder, ROOT)


def a_class(folder: Path, students: Iterable[str] = STUDENTS) -> ScratchCourse:
    """A course with the assignment ``traps``, handed in with right answers by each of the students."""

    def release(new: Path) -> None:
        course = ScratchCourse(new, ROOT)
        course.add_assignment(TRAPS)
        (new / "solutions/traps/traps.py").write_text("# the solutions' script")
        course.nbgrader("generate_assignment", "traps")

    course = copied(built_once("traps", release), folder)
    notebook = course.released("traps")
    for student in students:
        code = f"def negate(x):\n    return -x  # {student}"
        hand_in(course, "traps", student, answered(notebook, negate=code))
    return course


def cells(*some: tuple[str, str], exercise: str = "", names: list[str] | None = None) -> list[PlannedCell]:
    """Cells as a sandbox takes them, of an exercise each; tests find these of the student's names, or all."""
    its = lambda role: names if names is None or role == "test" else []
    found = [(i, role, code, f"t{i}", exercise or f"e{i}", its(role)) for i, (role, code) in enumerate(some)]
    return [PlannedCell(*each) for each in found]


def configure(course: ScratchCourse, line: str) -> None:
    with (course.folder / "nbgrader_config.py").open("a") as file:
        file.write(f"{line}\n")


def command(course: ScratchCourse, *arguments: str, program="autograder", **more: str) -> CompletedProcess:
    """Run the course's own command there, or nbgrader's, with some more variables."""
    env = {**os.environ, **course.environment, **more}
    return run(sys.executable, "-m", program, *arguments, cwd=course.folder, env=env)


@contextmanager
def as_current(course: ScratchCourse) -> Iterator[pytest.MonkeyPatch]:
    """While it lasts, the current folder is the course's, and so are the variables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(course.folder)
        for name, value in course.environment.items():
            patch.setenv(name, value)
        yield patch


def nbgrader(course: ScratchCourse, app: type[NbGrader], *arguments: str, status: int = 0) -> str:
    """As ``course.nbgrader``, in this process: what a command says, which ends with this status."""
    said, ended = io.StringIO(), 0
    with as_current(course), redirect_stdout(said), redirect_stderr(said):
        try:
            command = app()
            command.initialize([*arguments])
            command.start()
        except SystemExit as exit:
            ended = exit.code
    assert ended == status and (status or "Traceback" not in said.getvalue()), said.getvalue()
    return said.getvalue()


def gradebook() -> Gradebook:
    """That of the course in the current folder."""
    return Gradebook(f"sqlite:///{Path.cwd() / 'gradebook.db'}")


def decide(student: str, test: str, points: float) -> None:
    with gradebook() as opened:
        entry = opened.find_grade(test, "traps", "traps", student)
        entry.manual_score, entry.needs_manual_grade = points, False
        opened.db.commit()


def due(when: str | None = "2027-03-05 12:00:00 UTC", percent_a_day: int = 0, **handed_in_at: str) -> None:
    """Make the assignment due then, with what a day costs, and with times of some that were handed in."""
    with gradebook() as opened:
        opened.find_assignment("traps").duedate = utc(when)
        opened.db.commit()
    if percent_a_day:
        Path("late.csv").write_text(f"assignment,student,percent_a_day\n*,*,{percent_a_day}\n")
    for student, moment in handed_in_at.items():
        handed_in(student).with_name("timestamp.txt").write_text(moment)


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Files that cannot grow behave as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def scores(db_url: str | None = None, assignment: str = "traps") -> dict[str, float]:
    """Everybody's points, less the penalty, in a gradebook: that of the current folder if none is given."""
    with Gradebook(db_url) if db_url else gradebook() as opened:
        all_of_it = opened.assignment_submissions(assignment)
        return {one.student_id: one.score - (one.late_submission_penalty or 0.0) for one in all_of_it}


handed_in = lambda student: Path("submitted", student, "traps", "traps.ipynb")
autograded = lambda student: Path("autograded", student, "traps", "traps.ipynb")


def grades(course: ScratchCourse) -> dict[str, dict[str, float | None]]:
    """The points of the exercises in a SQLite gradebook, by student and test cell."""
    points = course.points("traps")
    return {student: {name: tests[name] for name in FULL} for student, tests in points.items()}


def half_written(course: ScratchCourse) -> int:
    """How many grades in a SQLite gradebook are empty."""
    with sqlite3.connect(course.folder / "gradebook.db") as database:
        return database.execute("SELECT count(*) FROM grade WHERE auto_score IS NULL").fetchone()[0]
