"""The watch command as it is typed, in the sandbox."""

import os
import signal
import subprocess
import sys

import psutil
import pytest
from grading_class import command, scores
from programs import PATIENCE, until
from watched_class import page, queue, send


class Command(subprocess.Popen):
    """A watch command that runs; ``log`` has what it has written so far."""

    def __init__(self, course, *arguments: str) -> None:
        self.log = course.folder / "watch.log"
        words = [sys.executable, "-m", "autograder", "watch", "--workers", "2", *arguments]
        with self.log.open("w") as log:
            where = {"cwd": course.folder, "env": os.environ | course.environment}
            super().__init__(words, stdout=log, stderr=log, **where)

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.wait()

    def says(self, words: str) -> str:
        """Wait for a line with these words."""
        found = lambda: [line for line in self.log.read_text().splitlines() if words in line]
        return until(found, self, self.log)[0]

    def stop(self, way: signal.Signals = signal.SIGINT) -> int:
        """Stop it; gives its exit status when all its processes are gone."""
        children = psutil.Process(self.pid).children()
        self.send_signal(way)
        status = self.wait(PATIENCE)
        assert psutil.wait_procs(children, PATIENCE)[1] == []
        return status


@pytest.mark.needs("bubblewrap")
@pytest.mark.slow
def test_a_class_hands_in_and_gets_it_back_at_once(inbox) -> None:
    half = {"negate": "def negate(x):\n    return x"}
    with Command(inbox, "traps", "--release") as watcher:
        watcher.says("Watching submitted/ and ")
        second = command(inbox, "watch")
        assert second.returncode == 1 and "Another watch command is at work" in second.stderr
        first = send(inbox, "ada")
        line = watcher.says("traps  ada  ")
        assert "9.5 of 16 points" in line and line.endswith("; 0 wait"), line
        assert "(Score: 9.5 / 16.0)" in " ".join(page(first).read_text().split())
        send(inbox, "bo", **half)
        watcher.says("traps  bo  6.5 of 16 points")
        send(inbox, "ada", **half)
        watcher.says("ada  6.5 of 16 points; the earlier submission counts, with 9.5")
        assert command(inbox, "grade", "traps").returncode == 0
        assert command(inbox, "late", "traps").returncode == 1  # there is no table; it was not refused
        assert watcher.stop() == 0
    assert scores() == {"ada": 9.5, "bo": 6.5} and not queue().at_work
    with Command(inbox, "traps", "--release") as watcher:
        send(inbox, "bo", double="def double(x):\n    return x + x")
        watcher.says("traps  bo  9.5 of 16 points")
        assert watcher.stop(signal.SIGTERM) == 0 and watcher.log.read_text().count("  traps  ") == 1
