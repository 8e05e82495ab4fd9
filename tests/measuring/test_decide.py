import random

import pytest

from autograder.measuring.decide import SignTest


def verdict(values, error=1e-3):
    test = SignTest()
    for number, value in enumerate(values, start=1):
        test.add(value)
        if test.word(error) != "undecided":
            return test.word(error), number
    return "undecided", number


def test_eleven_equal_signs_are_enough_for_one_in_a_thousand():
    assert verdict([1.0] * 20) == ("faster", 11)
    assert verdict([-1.0] * 20) == ("slower", 11)
    assert verdict([1.0] * 20, error=1e-2) == ("faster", 8)


def test_evidence_is_the_mixture_that_the_docstring_says():
    test = SignTest(above=5, below=2)
    steps = 100_000
    points = ((i + 0.5) / (2 * steps) + 0.5 for i in range(steps))
    mixture = sum((2 * p) ** 5 * (2 * (1 - p)) ** 2 for p in points) / steps
    assert test.faster == pytest.approx(mixture / 2, rel=1e-6)
    assert SignTest(above=5).faster == pytest.approx((2**5 + (2**6 - 1) / 6) / 2)


def test_without_a_difference_wrong_verdicts_stay_below_the_bound_wherever_one_stops():
    source = random.Random(7)
    words = [verdict([source.choice((-1, 1)) for _ in range(200)], error=0.05)[0] for _ in range(2000)]
    assert 0 < words.count("faster") < 0.05 * 2000
    assert 0 < words.count("slower") < 0.05 * 2000


def test_zeros_count_for_neither_side():
    assert verdict([0.0] * 100) == ("undecided", 100)
