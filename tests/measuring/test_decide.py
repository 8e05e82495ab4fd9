import itertools
import random

import pytest

from autograder.measuring.decide import decide, evidence


def test_eleven_equal_signs_are_enough_for_one_in_a_thousand():
    assert decide([2.0] * 20, 1e-3).ratios == [2.0] * 11
    assert decide([2.0] * 20, 1e-3).word == "faster"
    assert decide([0.5] * 20, 1e-3).word == "slower"
    assert len(decide([2.0] * 20, 1e-2).ratios) == 8


def test_no_more_ratios_are_measured_than_are_needed():
    measured = iter([1.5] * 50)
    decide(measured, 1e-3)
    assert len(list(measured)) == 50 - 11


def test_evidence_is_the_mixture_that_the_docstring_says():
    steps = 100_000
    points = ((i + 0.5) / (2 * steps) + 0.5 for i in range(steps))
    mixture = sum((2 * p) ** 5 * (2 * (1 - p)) ** 2 for p in points) / steps
    assert float(evidence(5, 2)) == pytest.approx(mixture / 2, rel=1e-6)
    assert evidence(5, 0) == pytest.approx((2**5 + (2**6 - 1) / 6) / 2)


def test_without_a_difference_wrong_verdicts_stay_below_the_bound_wherever_one_stops():
    source = random.Random(7)
    words = [decide((source.choice((0.5, 2)) for _ in range(200)), 0.05).word for _ in range(2000)]
    assert 0 < words.count("faster") < 0.05 * 2000
    assert 0 < words.count("slower") < 0.05 * 2000


def test_ratios_of_one_count_for_neither_side_and_the_end_leaves_it_open():
    assert decide([1.0] * 100, 1e-3).word == "undecided"
    assert decide(itertools.chain([2.0] * 10, [1.0] * 5), 1e-3).word == "undecided"
    assert decide([], 1e-3).ratios == []


@pytest.mark.parametrize("error", [0, 1, -1, float("nan")])
def test_a_bound_that_is_no_probability_is_refused(error):
    with pytest.raises(ValueError, match="a probability between 0 and 1"):
        decide([2.0], error)
