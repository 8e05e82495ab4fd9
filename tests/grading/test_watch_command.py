"""The watch command as it is typed, with nbgrader's own commands for students, in the sandbox."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from grading_class import a_class, command, nbgrader, scores
from nbgrader.apps import CollectApp, ReleaseAssignmentApp
from pretend_class import answered
from watched_class import INBOUND, POOR, code, queue, send

from autograder.authoring.scratch_course import ScratchCourse

PATIENCE = 120  # seconds: a guard against a hang, not an expectation


class Command:
    """A watch command that runs; ``lines`` are those that it has written so far."""

    def __init__(self, course: ScratchCourse, *arguments: str) -> None:
        self.log = course.folder / "watch.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "autograder", "watch", "--workers", "2", *arguments],
                cwd=course.folder,
                env={**os.environ, **course.environment},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def says(self, words: str) -> str:
        """Wait for a line with these words."""
        end = time.monotonic() + PATIENCE
        while not (found := [line for line in self.log.read_text().splitlines() if words in line]):
            assert self.process.poll() is None and time.monotonic() < end, self.log.read_text()
            time.sleep(0.1)
        return found[0]

    def stop(self, way: signal.Signals = signal.SIGINT) -> int:
        """Stop it; gives its exit status when all its processes are gone."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.process.send_signal(way)
        status = self.process.wait(PATIENCE)
        end = time.monotonic() + PATIENCE
        while any(Path("/proc", child).exists() for child in children):
            assert time.monotonic() < end
            time.sleep(0.1)
        return status


class Student:
    """Somebody who works with nbgrader's commands in a folder of their own."""

    def __init__(self, course: ScratchCourse, name: str) -> None:
        self.course, self.name = course, name
        self.folder = course.folder / "homes" / name
        self.folder.mkdir(parents=True)
        (self.folder / "nbgrader_config.py").write_text(
            "c = get_config()\n"
            f"c.Exchange.root = {str(course.folder / 'exchange')!r}\n"
            f"c.Exchange.cache = {str(self.folder / 'cache')!r}\n"
        )
        self.nbgrader("fetch_assignment", "traps")

    def nbgrader(self, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", *arguments, "--course=fast-pytorch", f"--student={self.name}"],
            cwd=self.folder,
            env={**os.environ, "JUPYTER_CONFIG_DIR": str(self.folder / "jupyter")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    def submits(self, **answers: str) -> None:
        notebook = answered(self.course.released("traps"), **answers)
        (self.folder / "traps" / "traps.ipynb").write_text(json.dumps(notebook))
        self.nbgrader("submit", "traps")

    def page(self) -> str:
        """The newest page, as fetched from the exchange."""
        self.nbgrader("fetch_feedback", "traps")
        (newest,) = sorted(self.folder.glob("traps/feedback/*/traps.html"))[-1:]
        return newest.read_text()


@pytest.fixture
def released(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> ScratchCourse:
    """A course with the assignment in its exchange, in the current folder; nobody has handed it in."""
    course = a_class(tmp_path / "class", root, students=())
    monkeypatch.chdir(course.folder)
    nbgrader(course, ReleaseAssignmentApp, "traps")
    return course


def test_plain_collect_takes_the_newest_and_no_links(released: ScratchCourse) -> None:
    send(released, "ada", negate=POOR)
    folder = send(released, "ada")
    (folder / "grades.txt").symlink_to(Path("gradebook.db").resolve())
    (INBOUND / "bo+traps+some day+a").mkdir(mode=0o777)
    nbgrader(released, CollectApp, "traps")
    assert "# poor" not in code("submitted", "ada")
    assert not Path("submitted/ada/traps/grades.txt").exists()
    send(released, "ada", negate=POOR)
    nbgrader(released, CollectApp, "traps")
    assert "# poor" not in code("submitted", "ada")
    nbgrader(released, CollectApp, "traps", "--update")
    assert "# poor" in code("submitted", "ada")
    assert [path.name for path in Path("submitted").iterdir()] == ["ada"]


@pytest.mark.needs("bubblewrap")
@pytest.mark.slow
def test_a_class_hands_in_and_gets_it_back_at_once(released: ScratchCourse) -> None:
    ada, bo = Student(released, "ada"), Student(released, "bo")
    with Command(released, "traps", "--release") as watcher:
        watcher.says("Watching submitted/ and ")
        second = command(released, "watch")
        assert second.returncode == 1 and "Another watch command is at work" in second.stderr
        ada.submits()
        first = watcher.says("traps  ada  ")
        assert "9.5 of 16 points" in first and first.endswith("; 0 wait"), first
        assert "(Score: 9.5 / 16.0)" in " ".join(ada.page().split())
        bo.submits(negate="def negate(x):\n    return x")
        watcher.says("traps  bo  6.5 of 16 points")
        ada.submits(negate="def negate(x):\n    return x")
        watcher.says("ada  6.5 of 16 points; the earlier submission counts, with 9.5")
        assert command(released, "grade", "traps").returncode == 0
        assert command(released, "late", "traps").returncode == 1  # there is no table; it was not refused
        bo.submits()
        watcher.says("traps  bo  9.5 of 16 points")
        assert "(Score: 9.5 / 16.0)" in " ".join(bo.page().split())
        assert watcher.stop() == 0
    assert scores() == {"ada": 9.5, "bo": 9.5}
    assert not queue().at_work
    with Command(released, "traps", "--release") as watcher:
        watcher.says("Watching")
        bo.submits(double="def double(x):\n    return x + x")
        watcher.says("traps  bo  9.5 of 16 points")
        assert watcher.stop(signal.SIGTERM) == 0
        assert watcher.log.read_text().count("  traps  ") == 1
