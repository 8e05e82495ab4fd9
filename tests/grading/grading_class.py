"""A small class for the tests of the engine, and pools that do as they are told."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

from pretend_class import answered, hand_in

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading.engine import Job
from autograder.judging.outcome import MIME
from autograder.sandbox import Executed, SandboxError, Step

STUDENTS = ("ada", "bo", "chen", "dalia", "emeka", "fumi")
RACE = "square_hidden"  # plays the part of a race
FULL = {"double_check", "double_hidden", "square_check", "square_hidden", "negate_check", "negate_hidden"}


def a_class(
    folder: Path, root: Path, students: Iterable[str] = STUDENTS, db_url: str | None = None
) -> ScratchCourse:
    """A course with the assignment ``traps``, handed in with right answers by each of the students."""
    course = ScratchCourse(folder, root)
    if db_url:
        configure(course, f"c.CourseDirectory.db_url = {db_url!r}")
    course.nbgrader("generate_assignment", course.add_assignment(Path(__file__).parent / "traps.py"))
    for student in students:
        notebook = answered(course.released("traps"), negate=f"def negate(x):\n    return -x  # {student}")
        hand_in(course, "traps", student, notebook)
    return course


def configure(course: ScratchCourse, line: str) -> None:
    """Add a line to the course's nbgrader_config.py."""
    with (course.folder / "nbgrader_config.py").open("a") as file:
        file.write(f"{line}\n")


def command(course: ScratchCourse, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the course's own command there."""
    return subprocess.run(
        [sys.executable, "-m", "autograder", *arguments],
        cwd=course.folder,
        env={**os.environ, "JUPYTER_CONFIG_DIR": str(course.folder / "jupyter")},
        capture_output=True,
        text=True,
    )


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
        word, points = (
            ("undecided", 0.5) if name == RACE and undecided else ("passed", 1.0 + ("hidden" in name))
        )
        if word == "undecided":
            done.undecided.append(index)
        data = {"outcome": word, "points": points, "max_points": 2, "message": "as told"}
        if name == RACE:
            data["laps"] = [{"device": "cpu", "ratio": 4.0, "required": 2.0}]
        done.outputs[index] = [
            {"output_type": "display_data", "data": {"text/plain": word, MIME: data}, "metadata": {}},
            {
                "output_type": "execute_result",
                "data": {"text/plain": str(points)},
                "metadata": {},
                "execution_count": 1,
            },
        ]
    return done.to_dict()


def pretend_slowly(cells: list[dict], **settings: object) -> dict:
    """As ``pretend``, with half a second more."""
    from time import sleep

    found = pretend(cells, **settings)
    sleep(0.5)
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


class Instant:
    """A pool of one worker in this process, which is done at once."""

    workers = 1
    warnings: ClassVar[list[str]] = []
    trouble = None

    def __init__(self, _require: bool = False, *, undecided: int = 0, broken: Iterable[str] = ()) -> None:
        self.jobs: deque[tuple[Job, Executed | str]] = deque()
        self.log: list[tuple[object, str]] = []
        self.undecided, self.broken = undecided, set(broken)

    def __call__(self, _require: bool) -> Instant:
        return self

    def close(self) -> None:
        self.jobs.clear()

    def start(self, job: Job, cells: list[dict], **settings: object) -> None:
        student = job.submission.student
        self.log.append((settings["races"], student))
        undecided = [name for _, name in self.log].count(student) <= self.undecided
        data = pretend(cells, undecided=undecided, **settings)
        self.jobs.append((job, "it broke" if student in self.broken else Executed.from_dict(data)))

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
