"""A small class for the tests of the engine, and pools that do as they are told."""

import io
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from fcntl import LOCK_EX, flock
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
from lab_server import PATIENCE
from lab_server import stop as stop_server
from nbformat.v4 import new_output
from nbgrader.api import Gradebook
from nbgrader.apps import NbGrader
from pretend_class import FULL, answered, hand_in
from programs import run

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading.course import Course
from autograder.class_grading.engine import Job, Summary, grade
from autograder.class_grading.pool import Pool
from autograder.judging.outcome import MIME
from autograder.sandbox import Executed, SandboxError, Step

STUDENTS = ("ada", "bo", "chen", "dalia", "emeka", "fumi")
RACE = "square_hidden"  # plays the part of a race
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


def copied(template: Path, folder: Path, root: Path) -> ScratchCourse:
    """A copy of a course in another folder."""
    shutil.copytree(template, folder, dirs_exist_ok=True)
    return ScratchCourse(folder, root)


def a_class(folder: Path, root: Path, students: Iterable[str] = STUDENTS) -> ScratchCourse:
    """A course with the assignment ``traps``, handed in with right answers by each of the students."""

    def release(new: Path) -> None:
        course = ScratchCourse(new, root)
        course.add_assignment(TRAPS)
        (new / "solutions/traps/traps.py").write_text("# the solutions' script")
        course.nbgrader("generate_assignment", "traps")

    course = copied(built_once("traps", release), folder, root)
    notebook = course.released("traps")
    for student in students:
        code = f"def negate(x):\n    return -x  # {student}"
        hand_in(course, "traps", student, answered(notebook, negate=code))
    return course


def half_undecided(folder: Path, root: Path) -> None:
    """Make a graded class in which noise left one race of everybody undecided, at 0.5 of 2 points, and ada
    is late.
    """
    course = a_class(folder, root)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(course.folder)
        with gradebook() as opened:
            opened.update_or_create_assignment("traps", duedate="2026-03-05 12:00:00 UTC")
        handed_in("ada").with_name("timestamp.txt").write_text("2026-03-05 13:00:00 UTC")
        Path("late.csv").write_text("assignment,student,percent_a_day\n*,*,50\n")
        assert not graded(Instant(undecided=2)).failed


def configure(course: ScratchCourse, line: str) -> None:
    """Add a line to the course's nbgrader_config.py."""
    with (course.folder / "nbgrader_config.py").open("a") as file:
        file.write(f"{line}\n")


def use_gradebook(course: ScratchCourse, url: str) -> None:
    """Let a course that nobody is graded in have another gradebook."""
    (course.folder / "gradebook.db").unlink()
    configure(course, f"c.CourseDirectory.db_url = {url!r}")
    course.nbgrader("generate_assignment", "traps", "--force")


def command(
    course: ScratchCourse, *arguments: str, program: str = "autograder", **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the course's own command there, or nbgrader's, with some more variables."""
    env = {**os.environ, **course.environment, **more}
    return run(sys.executable, "-m", program, *arguments, cwd=course.folder, env=env)


@contextmanager
def running(log: Path, ready: Callable[[], Any], *command: str, **options: Any) -> Iterator[Any]:
    """A program that runs until the block ends, and what ``ready`` finds when it has something."""
    with log.open("a") as stream:
        where = {"stdin": subprocess.DEVNULL, "stdout": stream, "stderr": stream}
        process = subprocess.Popen(command, start_new_session=True, **where, **options)
    try:
        end = time.monotonic() + PATIENCE
        while not (found := ready()):
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        yield found
    finally:
        stop_server(process)


def nbgrader(course: ScratchCourse, app: type[NbGrader], *arguments: str, status: int = 0) -> str:
    """As ``course.nbgrader``, in this process: what a command says, which ends with this status."""
    said, ended = io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(said):
        patch.chdir(course.folder)
        patch.setenv("JUPYTER_CONFIG_DIR", course.environment["JUPYTER_CONFIG_DIR"])
        try:
            command = app()
            command.initialize([*arguments])
            command.start()
        except SystemExit as exit:
            ended = exit.code
    assert ended == status and (status or "Traceback" not in said.getvalue()), said.getvalue()
    return said.getvalue()


def graded(connect: Callable[[bool], Pool] | None = None, **options: object) -> Summary:
    """Grade the class in the current folder, with a pool that pretends if no other is given."""
    with Course("traps") as opened, opened.locked():
        return grade(opened, connect=connect or Instant(), **options)


def after(number: int, act: Callable[[], object]) -> Callable[[], None]:
    """What a grader does between two submissions: when so many are graded, something happens."""
    turns = count(1)

    def between() -> None:
        if next(turns) == number:
            act()

    return between


def stop() -> None:
    """As Ctrl-C does."""
    raise KeyboardInterrupt


def gradebook() -> Gradebook:
    """That of the course in the current folder."""
    return Gradebook(f"sqlite:///{Path.cwd() / 'gradebook.db'}")


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
        return {
            one.student_id: one.score - (one.late_submission_penalty or 0.0)
            for one in opened.assignment_submissions(assignment)
        }


def handed_in(student: str) -> Path:
    return Path("submitted", student, "traps", "traps.ipynb")


def autograded(student: str) -> Path:
    return Path("autograded", student, "traps", "traps.ipynb")


def pretend(
    cells: list[dict],
    *,
    races: str,
    tell: Callable[[Step], None] = lambda step: None,
    only: list[int] | None = None,
    undecided: bool = False,
    **_: object,
) -> dict:
    """Takes the place of a Sandbox: full points in every test, and one cell that has to be timed."""
    tell(Step("starting"))
    for cell in cells:
        tell(Step("running", cell["index"], 0.1))
    done = Executed(sources={cell["index"]: cell["source"] for cell in cells}, sandboxed=True)
    done.seconds = dict.fromkeys(("cells", "tests", "races", "total"), 0.1)
    for cell in cells:
        index, name = cell["index"], cell["grade_id"]
        if cell["role"] != "test" or (only is not None and index not in only):
            continue
        word, points = "passed", 1.0 + ("hidden" in name)
        if name == RACE and undecided:
            word, points = "undecided", 0.5
            done.undecided.append(index)
        data = {"outcome": word, "points": points, "max_points": 2, "message": "as told"}
        if name == RACE:
            data["laps"] = [{"device": "cpu", "ratio": 4.0, "required": 2.0}]
        done.outputs[index] = [
            new_output("display_data", {"text/plain": word, MIME: data}),
            new_output("execute_result", {"text/plain": str(points)}, execution_count=1),
        ]
    return done.to_dict()


def pretend_slowly(cells: list[dict], **settings: object) -> dict:
    """As ``pretend``, with half a second more."""
    found = pretend(cells, **settings)
    time.sleep(0.5)
    return found


def refused_by_one(cells: list[dict], **settings: object) -> dict:
    """As ``pretend_slowly``, but on the first of Dask's workers it raises."""
    from distributed import get_worker

    if get_worker().name == "worker-0":
        raise SandboxError("bubblewrap was not found")
    return pretend_slowly(cells, **settings)


def deadly_to_all(cells: list[dict], **settings: object) -> dict:
    """As ``pretend``, but bo's submission ends every worker that runs it."""
    if any(cell["source"].endswith("# bo") for cell in cells):
        os.kill(os.getpid(), signal.SIGKILL)
    return pretend_slowly(cells, **settings)


class Pretending:
    """Stands for a Sandbox: as ``pretend_slowly``."""

    warning = notice = refusal = None

    def run(self, cells: list[dict], **settings: object) -> Executed:
        return Executed.from_dict(pretend_slowly(cells, **settings))

    def stop(self) -> None:
        pass


Change = Callable[[str, Executed], object]  # what happens to what was run, with whose it is


class Instant:
    """A pool of one worker in this process, which is done at once."""

    workers = 1
    warnings: ClassVar[list[str]] = []
    trouble = None

    def __init__(
        self, *, undecided: int = 0, broken: Iterable[str] = (), change: Change = lambda *_: None
    ) -> None:
        self.jobs: deque[tuple[Job, Executed | str]] = deque()
        self.log: list[tuple[object, str]] = []
        self.undecided, self.broken, self.change = undecided, set(broken), change

    def __call__(self, _require: bool) -> "Instant":
        return self

    def close(self) -> None:
        self.jobs.clear()

    def start(self, job: Job, cells: list[dict], **settings: object) -> None:
        student = job.submission.student
        self.log.append((settings["races"], student))
        undecided = [name for _, name in self.log].count(student) <= self.undecided
        done = Executed.from_dict(pretend(cells, undecided=undecided, **settings))
        self.change(student, done)
        self.jobs.append((job, "it broke" if student in self.broken else done))

    def wait(self) -> tuple[Job, Executed | str]:
        return self.jobs.popleft()


def grades(course: ScratchCourse) -> dict[str, dict[str, float | None]]:
    """The points of the exercises in a SQLite gradebook, by student and test cell."""
    return {
        student: {name: points for name, points in tests.items() if name in FULL}
        for student, tests in course.points("traps").items()
    }


def half_written(course: ScratchCourse) -> int:
    """How many grades in a SQLite gradebook are empty."""
    with sqlite3.connect(course.folder / "gradebook.db") as database:
        return database.execute("SELECT count(*) FROM grade WHERE auto_score IS NULL").fetchone()[0]
