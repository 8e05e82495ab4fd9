"""Blocks of calls on the clocks of a machine, rounds of blocks of two sides, and time limits."""

import math
import os
import random
import subprocess
import sys
import time
from math import inf

import pytest
import torch
from known_work import busy_for

from autograder.measuring import clocks, duel
from autograder.measuring.clocks import BLOCK_SECONDS, calibrate, run_block
from autograder.measuring.countdown import MOST_STRETCH, CoreTime, Countdown
from autograder.measuring.duel import FEWEST_ROUNDS, Side, interleave, log_ratios, ratio_of_logs
from autograder.measuring.settings import longest


def test_a_block_counts_its_calls_and_all_its_clocks_run():
    seen = []
    block = run_block(lambda tensor: seen.append(tensor.sum()), (torch.ones(1000),), calls=7)
    assert len(seen) == block.calls == 7
    assert block.cpu > 0 and block.wall > 0 and block.gpu is None
    assert block.per_call("wall") == block.wall / 7
    sleeps = run_block(lambda: time.sleep(0.05), (), calls=1)
    assert sleeps.wall > 5 * sleeps.cpu


def search(seconds_of, **most):
    found = clocks.BlockSearch(**most)
    while not found.found:
        found.take(seconds_of(found.calls))
    return found.calls


def test_blocks_are_long_enough_in_a_thousand_of_a_thousand_calibrations():
    """On a made-up clock, that one reading in five shows far too much, as on a busy machine."""
    source = random.Random(1)
    for _ in range(1000):
        once = 10 ** source.uniform(-7, -2)

        def seconds_of(calls, once=once):
            factor = source.uniform(1, 100) if source.random() < 0.2 else source.uniform(1, 1.1)
            return once * calls * factor

        calls = search(seconds_of)
        assert once * calls >= BLOCK_SECONDS
        assert calls == 1 or once * calls < 15 * BLOCK_SECONDS, "no longer than it need be"
    for most in (200, 1):
        assert search(lambda calls: 1e-9, most=most) == most


def test_calibration_asks_the_clock_that_judges():
    assert calibrate(time.sleep, (2 * BLOCK_SECONDS,), clock="wall") == 1
    assert calibrate(time.sleep, (1e-4,), clock="cpu") > 1.5 * calibrate(time.sleep, (1e-4,), clock="wall")
    assert calibrate(time.sleep, (clocks.LONGEST_BLOCK,), clock="cpu") == 1


def test_clocks_and_threads_agree_with_torch():
    assert duel.default_clock("cuda:0") == "cuda"
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), clocks.threads(1):
        assert torch.get_num_threads() == 1
        raise ZeroDivisionError
    assert torch.get_num_threads() == before


def test_a_bound_of_seconds_is_for_all_devices_or_for_one(monkeypatch):
    bounds = {"": (inf, inf), "0.1": (0.1, 0.1), "cpu=0": (0, inf), "cuda=0.5": (inf, 0.5)}
    for said, seconds in bounds.items():
        monkeypatch.setenv("AUTOGRADER_SECONDS", said)
        assert (longest("cpu"), longest("cuda:0")) == seconds


timed = lambda **functions: {name: Side(function, 20_000) for name, function in functions.items()}


def test_three_times_the_work_takes_three_times_as_long():
    sides = timed(three=lambda numbers: busy_for(0.009), one=lambda numbers: busy_for(0.003))
    ratio = interleave(sides, clock="cpu", seconds=0).ratio("three", "one")
    assert ratio.low <= ratio.median <= ratio.high and 2.9 < ratio.median < 3.1


def test_what_only_the_first_call_loads_is_not_held_against_a_side(monkeypatch):
    monkeypatch.setattr(duel, "LONGEST_CALL", 0.3)
    loaded = []

    def loads(numbers):
        if not loaded:
            loaded.append(time.sleep(0.31))
        numbers.sin()

    samples = interleave(timed(loads=loads, once=torch.sin), seconds=0)
    assert loaded and len(samples.blocks["once"]) == FEWEST_ROUNDS, "in no time, there are the fewest"
    assert max(samples.seconds("loads")) < duel.LONGEST_CALL / 10


def test_every_block_gets_fresh_inputs_and_both_sides_the_same_contents():
    seen = {"a": [], "b": []}
    keep = lambda name: lambda numbers: seen[name].append((id(numbers), numbers[0].item()))
    samples = interleave(timed(a=keep("a"), b=keep("b")), seconds=0.01)
    contents = [list(dict.fromkeys(value for _, value in seen[name])) for name in "ab"]
    # One seed for calibrating each side, then one a round that both sides share.
    assert contents[0][-FEWEST_ROUNDS:] == contents[1][-FEWEST_ROUNDS:]
    assert len(set(contents[0])) == len(samples.blocks["a"]) + 1 > FEWEST_ROUNDS


def test_what_is_nearly_equal_gets_as_many_calls_a_block():
    takes = {"a": 0.0030, "b": 0.0022, "far": 0.0005}
    sides = timed(**{name: lambda numbers, it=seconds: busy_for(it) for name, seconds in takes.items()})
    blocks = interleave(sides, clock="cpu", seconds=0).blocks
    calls = {name: {block.calls for block in blocks[name]} for name in sides}
    assert calls["a"] == calls["b"] and min(calls["far"]) > max(calls["a"])


def test_an_interval_of_order_statistics_holds_the_true_ratio_as_often_as_it_says():
    source = random.Random(5)
    held = 0
    for _ in range(1000):
        slow = [2 * math.exp(source.gauss(0, 0.3)) for _ in range(25)]
        ratio = ratio_of_logs(log_ratios(slow, [1.0] * 25))
        held += ratio.low <= 2 <= ratio.high
    assert 950 <= held < 999, "an interval that always holds the truth is too wide to be one of 95 %"
    ratio = ratio_of_logs(log_ratios(range(1, 8), [1] * 7))  # of seven, it is the whole range
    assert (ratio.low, ratio.median, ratio.high) == pytest.approx((1, 4, 7))


# Time limits on a busy machine: only waiting for a core is given back (as test_isolated.py shows).

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel tells it on Linux")
SECONDS = 0.8


class AlwaysWaiting(CoreTime):
    seconds = lambda self: (0.0, 2 * time.monotonic())


@on_linux
def test_who_sleeps_gets_nothing_back_and_who_waits_forever_comes_to_an_end() -> None:
    for seconds, core_time in ((SECONDS, CoreTime()), (SECONDS / MOST_STRETCH, AlwaysWaiting())):
        start, countdown = time.monotonic(), Countdown(seconds, core_time)
        while countdown.left():
            time.sleep(SECONDS / 10)  # at each waking it waits for a core, and that is given back
        assert SECONDS <= time.monotonic() - start < 3 * SECONDS
        countdown.put_off(100)
        assert countdown.left() > 90


@on_linux
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
