"""Time limits on a busy machine: waiting for a core is given back, and nothing else is."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from autograder.measuring.countdown import MOST_STRETCH, CoreTime, Countdown

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel tells it on Linux")

SECONDS = 0.8


@pytest.fixture
def neighbour() -> Iterator[int]:
    """A process that never rests, on the one core that this process may use meanwhile.

    One is enough to wait half of the time; with more and a busy machine, it might end by ``MOST_STRETCH``.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    started = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    time.sleep(0.2)
    yield started.pid
    started.kill()
    started.wait()
    os.sched_setaffinity(0, before)


def work_until_over(countdown: Countdown) -> float:
    """Compute until the time is over; the CPU seconds that this process had."""
    start = time.process_time()
    while countdown.left():
        pass
    return time.process_time() - start


def test_who_waits_for_a_core_gets_back_what_others_took(neighbour: int) -> None:
    assert work_until_over(Countdown(SECONDS, CoreTime())) > 0.7 * SECONDS
    all_of_them = CoreTime(lambda: [os.getpid(), neighbour])
    assert work_until_over(Countdown(SECONDS, all_of_them)) < 0.7 * SECONDS


class AlwaysWaiting(CoreTime):
    def seconds(self) -> tuple[float, float]:
        return 0.0, 2 * time.monotonic()


@pytest.mark.parametrize(
    ("seconds", "core_time"), [(SECONDS, CoreTime()), (SECONDS / MOST_STRETCH, AlwaysWaiting())]
)
def test_who_sleeps_gets_nothing_back_and_who_waits_forever_comes_to_an_end(seconds, core_time) -> None:
    start, countdown = time.monotonic(), Countdown(seconds, core_time)
    while countdown.left():
        time.sleep(SECONDS / 10)  # at each waking it waits for a core, and that is given back
    assert SECONDS <= time.monotonic() - start < 3 * SECONDS
    countdown.put_off(100)
    assert countdown.left() > 90


def test_threads_count_and_so_do_those_that_have_ended() -> None:
    core_time = CoreTime()
    before, _ = core_time.seconds()
    burn = "import time\nwhile time.process_time() < 0.4: pass"
    with subprocess.Popen([sys.executable, "-c", burn]) as process:
        of_both = CoreTime(lambda: [os.getpid(), process.pid])
        while process.poll() is None:
            time.sleep(0.05)
            of_both.seconds()
    time.sleep(0.3)
    assert of_both.seconds()[0] - before > 0.2
    assert CoreTime(lambda: [1 << 30]).seconds() == (0, 0)
