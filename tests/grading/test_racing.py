"""Who works on which of a machine's cores, and which launches of a race count."""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from autograder.measuring.duel import TooNoisy
from autograder.sandbox.racing import machine_lock
from autograder.sandbox.racing.machine_lock import MachineLock, cores
from autograder.sandbox.racing.undisturbed import FEW, MOST_THROWN_AWAY, Undisturbed

# Has a core of the two that there are, until it is killed.
HOLDER = """
import sys
from autograder.measuring.duel import TooNoisy
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
    assert has_all.wait(60) and not has_one.wait(0.3)
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
    assert sorted(lock.take()) == [3, 5]
    lock.release()
    assert list(places["elsewhere"].iterdir()) == []


def test_two_threads_of_a_core_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3, 6}, raising=False)
    monkeypatch.setattr(machine_lock, "_siblings", lambda core: str(core % 4))
    assert cores() == [0, 1, 2, 3]


# Which launches count, where something made a side slow.


def launch(slow: float, fast: float) -> list[dict[str, float]]:
    return [{"slow": slow * noise, "fast": fast * noise} for noise in (0.98, 1.0, 3.0)]


def kept(launches: list, race: Undisturbed | None = None) -> list[list[dict[str, float]]]:
    race = race or Undisturbed(planned=4)
    return [one for some in launches for one in race.take(some)] + list(race.rest())


USUAL, BOTH, GIVEN, ANSWER = launch(4, 1), launch(8, 2.1), launch(8, 1), launch(4, 2.1)


def test_a_launch_counts_if_both_sides_were_slow_and_not_if_one_was() -> None:
    both, single = Undisturbed(planned=4), Undisturbed(planned=4)
    assert kept([USUAL, BOTH, USUAL, BOTH], both) == [USUAL, BOTH, USUAL, BOTH]
    assert kept([USUAL, GIVEN, USUAL, ANSWER], single) == [USUAL, USUAL]
    assert (both.thrown_away, single.thrown_away) == (0, 2)


def test_the_first_launch_is_looked_at_together_with_the_second() -> None:
    race = Undisturbed(planned=4)
    assert list(race.take(ANSWER)) == [] and list(race.take(USUAL)) == [USUAL]
    assert kept([ANSWER]) == [ANSWER], "nothing shows that the answer is usually faster"


def test_an_answer_that_is_slow_now_and_then_is_no_noise() -> None:
    assert kept([USUAL, *[ANSWER] * 5]) == [USUAL, *[ANSWER] * (5 - FEW)]


def test_a_machine_that_disturbs_the_given_version_too_often_cannot_judge() -> None:
    most = MOST_THROWN_AWAY
    with pytest.raises(TooNoisy, match=rf"in {most + 1} of {most + 2} launches the given version took more"):
        kept([USUAL, *[GIVEN] * (most + 1)])
