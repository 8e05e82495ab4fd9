"""Time limits on a busy machine: only waiting for a core is given back (as test_isolated.py shows)."""

import os
import subprocess
import sys
import time

import pytest

from autograder.measuring.countdown import MOST_STRETCH, CoreTime, Countdown

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel tells it on Linux")

SECONDS = 0.8


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
