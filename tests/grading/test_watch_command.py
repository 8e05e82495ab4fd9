"""The watch command as it is typed, in the sandbox."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from grading_class import a_class, command, scores
from watched_class import INBOUND, page, queue, send

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

    def __enter__(self) -> "Command":
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
        children = psutil.Process(self.process.pid).children()
        self.process.send_signal(way)
        status = self.process.wait(PATIENCE)
        assert psutil.wait_procs(children, PATIENCE)[1] == []
        return status


@pytest.fixture
def released(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> ScratchCourse:
    """A course with an exchange in which nobody has handed in anything, in the current folder."""
    course = a_class(tmp_path / "class", root, students=())
    monkeypatch.chdir(course.folder)
    INBOUND.mkdir(parents=True)
    return course


@pytest.mark.needs("bubblewrap")
@pytest.mark.slow
def test_a_class_hands_in_and_gets_it_back_at_once(released: ScratchCourse) -> None:
    half = {"negate": "def negate(x):\n    return x"}
    with Command(released, "traps", "--release") as watcher:
        watcher.says("Watching submitted/ and ")
        second = command(released, "watch")
        assert second.returncode == 1 and "Another watch command is at work" in second.stderr
        first = send(released, "ada")
        line = watcher.says("traps  ada  ")
        assert "9.5 of 16 points" in line and line.endswith("; 0 wait"), line
        assert "(Score: 9.5 / 16.0)" in " ".join(page(first).read_text().split())
        send(released, "bo", **half)
        watcher.says("traps  bo  6.5 of 16 points")
        send(released, "ada", **half)
        watcher.says("ada  6.5 of 16 points; the earlier submission counts, with 9.5")
        assert command(released, "grade", "traps").returncode == 0
        assert command(released, "late", "traps").returncode == 1  # there is no table; it was not refused
        assert watcher.stop() == 0
    assert scores() == {"ada": 9.5, "bo": 6.5}
    assert not queue().at_work
    with Command(released, "traps", "--release") as watcher:
        send(released, "bo", double="def double(x):\n    return x + x")
        watcher.says("traps  bo  9.5 of 16 points")
        assert watcher.stop(signal.SIGTERM) == 0
        assert watcher.log.read_text().count("  traps  ") == 1
