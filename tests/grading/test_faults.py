"""Workers, schedulers, graders, databases are killed in the middle; a second run grades the rest, once."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import psutil
import pytest
from distributed import Client
from grading_class import STUDENTS, autograded, command, configure, grades, half_written, handed_in, scores
from lab_server import listens
from postgres import Postgres
from pretend_class import FULL, find
from pretend_pools import Pretending, after, deadly_to_all, graded, pretend_slowly, refused_by_one
from programs import until

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading import engine, status
from autograder.class_grading.course import Course
from autograder.class_grading.gradebook import GradingError
from autograder.class_grading.pool import LocalPool, Pool, PoolError
from autograder.extras import dask as dask_pool
from autograder.extras.dask import DaskPool

pytestmark = pytest.mark.slow


def here(require: bool) -> LocalPool:
    """Two workers of this machine that only pretend."""
    return LocalPool([Pretending(), Pretending()])


def finished() -> set[str]:
    """The students whose autograded notebook is there."""
    return {path.parts[1] for path in Path().glob("autograded/*/traps/traps.ipynb")}


def all_graded_once(course: ScratchCourse, *runs: list[str]) -> None:
    assert sorted(student for graded in runs for student in graded) == sorted(STUDENTS)
    assert grades(course) == dict.fromkeys(STUDENTS, FULL) and half_written(course) == 0
    assert finished() == set(STUDENTS)


@contextmanager
def once(event: Callable[[], bool], act: Callable[[], object]) -> Iterator[None]:
    """Do something from outside as soon as something is true."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            if event():
                return act()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Dask:
    """A real scheduler with workers."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder, self.workers = folder, workers
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.processes: list[subprocess.Popen] = []
        self.start()

    def start(self) -> None:
        self._start("scheduler", "--host", "127.0.0.1", "--port", str(self.port))
        until(lambda: listens(self.port), self.processes[0])
        for number in range(self.workers):
            self.add_worker(f"worker-{number}")

    def add_worker(self, name: str) -> None:
        self._start("worker", self.address, "--nthreads", "1", "--name", name)

    def _start(self, *arguments: str) -> None:
        words = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        there = {"cwd": self.folder, "env": {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}}
        self.processes.append(subprocess.Popen(words, **there, **quiet))

    def __enter__(self) -> "Dask":
        return self

    def __exit__(self, *_: object) -> None:
        while self.processes:
            process = self.processes.pop()
            process.kill()  # the process that a worker has for its tasks sees that and ends, too
            process.wait()

    def restart(self) -> None:
        """All of it is gone, and comes back at the same address after some seconds, while others go on."""
        self.__exit__()
        threading.Timer(3, self.start).start()


class WithoutSandboxes(DaskPool):
    """Its workers only pretend, and need none."""

    def _prepare(self) -> list[str]:
        return []


def pretending(dask: Dask, run: Callable[..., dict] = pretend_slowly) -> Callable[[bool], Pool]:
    return lambda _: WithoutSandboxes(dask.address, run=run)


def test_a_killed_worker_costs_nothing_nor_does_one_that_cannot_run_submissions(course, tmp_path) -> None:
    def kill() -> None:
        children = psutil.Process().children(recursive=True)
        next(one for one in children if any("spawn_main" in word for word in one.cmdline())).kill()

    with Dask(tmp_path) as dask:
        with once(lambda: len(finished()) >= 1, kill):
            summary = graded(pretending(dask))
        all_graded_once(course, summary.graded)
        with Client(dask.address) as client:  # the scheduler may take the killed one for alive at first
            until(lambda: len(client.run(os.getpid, on_error="ignore")) == 2)
        summary = graded(pretending(dask, refused_by_one), force=True)
    assert summary.failed == {}
    all_graded_once(course, summary.graded)


def test_a_submission_that_kills_its_workers_costs_only_itself(course: ScratchCourse, tmp_path: Path) -> None:
    with Dask(tmp_path) as dask:
        summary = graded(pretending(dask, deadly_to_all))
    assert list(summary.failed) == ["bo"]
    assert "The worker processes that ran it died" in summary.failed["bo"]
    all_graded_once(course, summary.graded, graded(here).graded)


@pytest.mark.needs("bubblewrap")
def test_a_worker_that_joins_late_does_the_rest(course: ScratchCourse, tmp_path: Path) -> None:
    """With real sandboxes: nobody made one on it before."""

    def relieve() -> None:
        dask.add_worker("late")
        time.sleep(5)
        dask.processes[1].kill()

    with Dask(tmp_path, workers=1) as dask, once(lambda: len(finished()) >= 1, relieve):
        done = command(course, "grade", "traps", "--scheduler", dask.address)
    assert done.returncode == 0, done.stdout + done.stderr
    all_graded_once(course, list(STUDENTS))


def test_a_scheduler_that_comes_back(course: ScratchCourse, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(status, "LOG_SECONDS", 0.5)
    with Dask(tmp_path, workers=1) as dask:
        summary = graded(pretending(dask), between=after(2, dask.restart))
    all_graded_once(course, summary.graded)
    said = capsys.readouterr().err
    assert f"the Dask scheduler {dask.address} is gone. Start it and its workers." in said
    assert "tests, running" in said  # workers say what they do


def test_a_killed_scheduler(course: ScratchCourse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_pool, "LOST_SECONDS", 2)
    gone = pytest.raises(PoolError, match=r"The Dask scheduler tcp://\S+ is gone. Start it")
    with Dask(tmp_path, workers=1) as dask, gone:
        graded(pretending(dask), between=after(2, dask.processes[0].kill))
    first = json.loads(Path(".grading/traps.json").read_text())
    assert "is gone" in first["stopped"]
    assert (len(first["graded"]), first["left"]) == (2, len(STUDENTS) - 2)
    with Dask(tmp_path, workers=1) as dask:
        summary = graded(pretending(dask))
    all_graded_once(course, first["graded"], summary.graded)


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_grader(course: ScratchCourse, way: signal.Signals) -> None:
    for student in STUDENTS[2:]:  # so that it is not over when it is struck
        notebook = nbformat.read(handed_in(student), as_version=4)
        find(notebook, "negate").source += "\nimport time\ntime.sleep(2)"
        nbformat.write(notebook, handed_in(student))
    words = [sys.executable, "-m", "autograder", "grade", "traps", "--workers", "2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(words, text=True, **pipes)
    started: list[psutil.Process] = []

    def strike() -> None:
        started.extend(psutil.Process(process.pid).children(recursive=True))
        process.send_signal(way)

    with once(lambda: len(finished()) >= 1, strike):
        out, said = process.communicate(timeout=120)
    assert process.returncode == {signal.SIGKILL: -signal.SIGKILL, signal.SIGINT: 130}[way]
    assert way is signal.SIGKILL or "The same command goes on from here." in said
    assert way is signal.SIGKILL or re.search(r"^\d were graded in this run, \d are left\.$", out, re.M)
    assert psutil.wait_procs(started, timeout=15)[1] == []
    before = {path: path.stat().st_mtime for path in Path().glob("autograded/*/traps/traps.ipynb")}
    again = command(course, "grade", "traps")
    assert again.returncode == 0, again.stderr
    record = json.loads(Path(".grading/traps.json").read_text())
    all_graded_once(course, record["skipped"], record["graded"])
    for path in map(autograded, record["skipped"]):
        assert path.stat().st_mtime == before[path]


@pytest.fixture
def url(course: ScratchCourse, postgres: Postgres, request: pytest.FixtureRequest) -> str:
    """Where the gradebook of the course is, in PostgreSQL."""
    url = postgres.database(request.node.name)
    (course.folder / "gradebook.db").unlink()
    configure(course, f"c.CourseDirectory.db_url = {url!r}")
    course.nbgrader("generate_assignment", "traps", "--force")
    return url


def test_a_database_that_comes_back(url: str, postgres: Postgres, monkeypatch, capsys) -> None:
    def away() -> None:
        postgres.kill()
        time.sleep(4)
        postgres.start()

    monkeypatch.setattr(status, "LOG_SECONDS", 0.5)
    with once(lambda: len(finished()) >= 2, away):
        summary = graded(here)
    assert (sorted(summary.graded), summary.failed) == (sorted(STUDENTS), {})
    assert scores(url) == dict.fromkeys(STUDENTS, 16.0)
    said = capsys.readouterr().err
    assert "waiting for the gradebook postgresql+psycopg://" in said
    assert "which does not answer" in said


def test_a_killed_database(url: str, postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "OUTAGE_SECONDS", 0.0)
    refused = pytest.raises(GradingError, match=r"postgresql.psycopg://.* cannot be used: .* start again")
    with once(lambda: len(finished()) >= 2, postgres.kill), refused:
        graded(here)
    first = json.loads(Path(".grading/traps.json").read_text())["graded"]
    assert finished() == set(first)
    with pytest.raises(GradingError, match="See that the database runs"):
        Course("traps")
    postgres.start()
    found = scores(url)
    assert len(found) >= len(first) and {found[student] for student in first} == {16.0}
    assert sorted([*first, *graded().graded]) == sorted(STUDENTS)
    assert scores(url) == dict.fromkeys(STUDENTS, 16.0)
    assert postgres.sql("test_a_killed_database", "SELECT count(*) FROM submitted_assignment") == "6"
