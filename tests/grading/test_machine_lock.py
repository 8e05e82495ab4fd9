"""Who works on which of a machine's cores: whoever comes first, on as many as are asked for."""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from autograder.sandbox.racing import machine_lock
from autograder.sandbox.racing.machine_lock import MachineLock, cores

# Has a core of the two that there are, until it is killed.
HOLDER = """
import sys
from autograder.sandbox.racing import machine_lock
machine_lock.cores = lambda: [3, 5]
lock = machine_lock.MachineLock()
print(*lock.take(1), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_lock, "cores", lambda: [3, 5])


def holder() -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", HOLDER], text=True, **pipes)


def taking(lock: MachineLock, number: int | None) -> threading.Event:
    """Take cores in a thread; what is set when it has them."""
    done = threading.Event()
    threading.Thread(target=lambda: (lock.take(number), done.set()), daemon=True).start()
    return done


def test_each_has_cores_of_its_own_which_end_with_its_process() -> None:
    holders = [holder(), holder()]
    assert sorted(process.stdout.readline() for process in holders) == ["3\n", "5\n"]
    mine = MachineLock()
    got = taking(mine, 1)
    assert not got.wait(0.3)
    holders[0].kill()
    assert got.wait(60)
    mine.release()
    holders[1].kill()
    for process in holders:
        process.communicate()


def test_who_wants_all_waits_and_keeps_others_from_coming_first() -> None:
    first, greedy, last = MachineLock(), MachineLock(), MachineLock()
    assert first.take(1)[0] in (3, 5)
    has_all = taking(greedy, None)
    assert not has_all.wait(0.3)
    has_one = taking(last, 1)  # a core is free
    assert not has_one.wait(0.3)
    first.release()
    assert has_all.wait(60)
    assert not has_one.wait(0.3)
    greedy.release()
    assert has_one.wait(60)
    last.release()


def test_what_somebody_else_put_there_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the folder for temporary files anybody may make a file, also a link to where it should be made."""
    places = {name: tmp_path / name for name in ("temporary", "cache", "elsewhere")}
    for place in places.values():
        place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(places["temporary"]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(places["cache"]))
    for name in ("queue", "0", "1"):
        link = places["temporary"] / f"autograder-{os.getuid()}-{name}.lock"
        link.symlink_to(places["elsewhere"] / name)
    lock = MachineLock()
    assert lock.take() == [3, 5]
    lock.release()
    assert list(places["elsewhere"].iterdir()) == []


def test_two_threads_of_a_core_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3, 6}, raising=False)
    monkeypatch.setattr(machine_lock, "_siblings", lambda core: str(core % 4))
    assert cores() == [0, 1, 2, 3]
