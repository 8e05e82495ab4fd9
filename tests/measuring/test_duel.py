import math
import random
import time

import pytest
import torch
from known_work import busy_for

from autograder.measuring import duel
from autograder.measuring.duel import FEWEST_ROUNDS, interleave, ratio_of


def some_numbers(generator, device):
    return torch.rand(20_000, generator=generator).to(device)


def repeat(times):
    def work(numbers):
        for _ in range(times):
            numbers.sin()

    return work


def test_three_times_the_work_takes_three_times_as_long():
    sides = {"three": lambda numbers: busy_for(0.009), "one": lambda numbers: busy_for(0.003)}
    ratio = interleave(sides, some_numbers, clock="cpu", seconds=0).ratio("three", "one")
    assert ratio.low <= ratio.median <= ratio.high
    assert 2.9 < ratio.median < 3.1


def test_what_only_the_first_call_loads_is_not_held_against_a_side(monkeypatch):
    monkeypatch.setattr(duel, "LONGEST_CALL", 0.3)
    loaded = []

    def loads(numbers):
        if not loaded:
            loaded.append(time.sleep(0.31))
        numbers.sin()

    samples = interleave({"loads": loads, "once": repeat(1)}, some_numbers, seconds=0)
    assert loaded
    assert max(samples.seconds("loads")) < duel.LONGEST_CALL / 10


def test_every_block_gets_fresh_inputs_and_both_sides_the_same_contents():
    seen = {"a": [], "b": []}

    def keep(name):
        return lambda numbers: seen[name].append((id(numbers), numbers[0].item()))

    samples = interleave({"a": keep("a"), "b": keep("b")}, some_numbers, seconds=0.01)
    contents = [list(dict.fromkeys(value for _, value in seen[name])) for name in "ab"]
    # One seed for calibrating each side, then one a round that both sides share.
    assert contents[0][-FEWEST_ROUNDS:] == contents[1][-FEWEST_ROUNDS:]
    assert len(set(contents[0])) == len(samples.blocks["a"]) + 1


def test_slow_functions_still_get_the_fewest_rounds():
    samples = interleave({"a": repeat(1), "b": repeat(1)}, some_numbers, seconds=0)
    assert len(samples.blocks["a"]) == FEWEST_ROUNDS


def test_what_is_nearly_equal_gets_as_many_calls_a_block():
    takes = {"a": 0.0030, "b": 0.0022, "far": 0.0005}
    sides = {name: lambda numbers, it=seconds: busy_for(it) for name, seconds in takes.items()}
    blocks = interleave(sides, some_numbers, clock="cpu", seconds=0).blocks
    calls = {name: {block.calls for block in blocks[name]} for name in sides}
    assert calls["a"] == calls["b"]
    assert min(calls["far"]) > max(calls["a"])


def test_an_interval_of_order_statistics_holds_the_true_ratio_as_often_as_it_says():
    source = random.Random(5)
    held = 0
    for _ in range(1000):
        slow = [2 * math.exp(source.gauss(0, 0.3)) for _ in range(25)]
        ratio = ratio_of(slow, [1.0] * 25)
        held += ratio.low <= 2 <= ratio.high
    assert held >= 950
    assert held < 999, "an interval that always holds the truth is too wide to be one of 95 %"


def test_seven_rounds_give_the_whole_range():
    ratio = ratio_of([1, 2, 3, 4, 5, 6, 7], [1] * 7)
    assert (ratio.low, ratio.high) == pytest.approx((1, 7))
    assert ratio.median == pytest.approx(4)
