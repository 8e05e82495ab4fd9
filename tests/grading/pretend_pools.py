"""Pools that do as they are told, and a class that is graded by them."""

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import ClassVar

from grading_class import a_class, as_current, due
from nbformat.v4 import new_output

from autograder.class_grading.course import Course
from autograder.class_grading.engine import Job, Summary, grade
from autograder.class_grading.pool import Pool
from autograder.judging.outcome import MIME
from autograder.sandbox import Executed, PlannedCell, SandboxError, Step

RACE = "square_hidden"  # plays the part of a race


def graded(connect: Callable[[bool], Pool] | None = None, **options: object) -> Summary:
    """Grade the class in the current folder, with a pool that pretends if no other is given."""
    make = connect or Instant()
    with ExitStack() as ending, Course("traps") as opened, opened.locked():
        return grade(opened, connect=lambda _: ending.enter_context(closing(make(_))), **options)


def half_undecided(folder: Path) -> None:
    """Make a graded class in which noise left one race of everybody undecided, at 0.5 of 2 points, and ada
    is late.
    """
    with as_current(a_class(folder)):
        due(percent_a_day=50, ada="2027-03-05 13:00:00 UTC")
        assert not graded(Instant(undecided=2)).failed


def after(number: int, act: Callable[[], object]) -> Callable[[], None]:
    """What a grader does between two submissions: when so many are graded, something happens."""
    turns = count(1)

    def between() -> None:
        if next(turns) == number:
            act()

    return between


def stop(*_: object) -> None:
    """As Ctrl-C does."""
    raise KeyboardInterrupt


def pretend(
    cells: list[PlannedCell],
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
        tell(Step("running", cell.index, 0.1))
    done = Executed(sources={cell.index: cell.source for cell in cells}, sandboxed=True)
    done.seconds = dict.fromkeys(("cells", "tests", "races", "total"), 0.1)
    for cell in cells:
        index, name = cell.index, cell.grade_id
        if cell.role != "test" or (only is not None and index not in only):
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
    return asdict(done)


def pretend_slowly(cells: list[PlannedCell], **settings: object) -> dict:
    """As ``pretend``, with half a second more."""
    found = pretend(cells, **settings)
    time.sleep(0.5)
    return found


def refused_by_one(cells: list[PlannedCell], **settings: object) -> dict:
    """As ``pretend_slowly``, but on the first of Dask's workers it raises."""
    from distributed import get_worker

    if get_worker().name == "worker-0":
        raise SandboxError("bubblewrap was not found")
    return pretend_slowly(cells, **settings)


def deadly_to_all(cells: list[PlannedCell], **settings: object) -> dict:
    """As ``pretend``, but bo's submission ends every worker that runs it."""
    if any(cell.source.endswith("# bo") for cell in cells):
        os.kill(os.getpid(), signal.SIGKILL)
    return pretend_slowly(cells, **settings)


class Pretending:
    """Stands for a Sandbox: as ``pretend_slowly``."""

    warning = notice = refusal = None

    def run(self, cells: list[PlannedCell], **settings: object) -> Executed:
        return Executed(**pretend_slowly(cells, **settings))

    def begin(self) -> None:
        pass

    stop = close = begin


Change = Callable[[str, Executed], object]  # what happens to what was run, with whose it is


class Instant:
    """A pool of one worker in this process, which is done at once."""

    workers = 1
    warnings: ClassVar[list[str]] = []
    trouble = None

    def __init__(self, *, undecided=0, broken: Iterable[str] = (), change: Change = lambda *_: None) -> None:
        self.jobs: deque[tuple[Job, Executed | str]] = deque()
        self.log: list[tuple[object, str]] = []
        self.undecided, self.broken, self.change = undecided, set(broken), change

    def __call__(self, _require: bool) -> "Instant":
        return self

    def close(self) -> None:
        self.jobs.clear()

    def start(self, job: Job, cells: list[PlannedCell], **settings: object) -> None:
        student = job.submission.student
        self.log.append((settings["races"], student))
        undecided = [name for _, name in self.log].count(student) <= self.undecided
        done = Executed(**pretend(cells, undecided=undecided, **settings))
        self.change(student, done)
        self.jobs.append((job, "it broke" if student in self.broken else done))

    def wait(self) -> tuple[Job, Executed | str]:
        return self.jobs.popleft()
