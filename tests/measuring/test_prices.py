"""A ratio is predicted from what both sides ask torch to do: on work of which it is known what it costs."""

import pytest
import torch

from autograder.measuring.duel import Ratio, Side
from autograder.measuring.prices import predict

SQUARE = (2048, 2048)
# What makes the difference of a pair, how much of it there is, and the pair.
PAIRS = {
    "calls": (50, lambda x: [x[0, 0].add(1) for _ in range(50)], lambda x: x[0, 0].add(1)),
    "bytes": (16, torch.neg, lambda x: x[:128].neg()),
    "arithmetic": (64, lambda x: x @ x, lambda x: x[:512, :512] @ x[:512, :512]),
}


@pytest.mark.parametrize("part", PAIRS)
def test_the_part_that_makes_a_difference_predicts_it(part):
    number, *pair = PAIRS[part]
    ones = lambda generator, device: torch.ones(SQUARE)
    sides = {name: Side(function, ones) for name, function in zip(("slow", "fast"), pair, strict=True)}
    found = predict(sides, "cpu", 1, Ratio(number, number, number))
    assert number / 2.5 < found.ratio < number * 2.5 and 0.6 < found.share < 1.4
    slow = found.bills["slow"]
    assert slow[part] > 0.6 * sum(slow.values()) and f"{part} " in str(found).partition(";")[0]


def test_a_prediction_that_is_far_off_says_so():
    twice = {name: Side(torch.neg, lambda *_: torch.ones(10)) for name in ("one", "the same")}
    assert "The prices lack something" in str(predict(twice, "cpu", 1, Ratio(3.0, 2.9, 3.1)))
    as_measured = predict(twice, "cpu", 1, Ratio(1.1, 1.0, 1.2))
    assert "lack" not in str(as_measured) and as_measured.share is None
    nothing = {"one": Side(len, lambda *_: [1]), "the same": Side(len, lambda *_: [1])}
    with pytest.raises(ValueError, match="'one' asks torch for nothing that has a price"):
        predict(nothing, "cpu", 1, Ratio(1.0, 1.0, 1.0))
