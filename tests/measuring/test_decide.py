import itertools
import math
import random

import pytest

from autograder.measuring.decide import (
    FAR,
    RARE,
    SAME,
    Strays,
    count_alike,
    decide,
    evidence_of_signs,
    evidence_of_size,
)


def test_eleven_equal_signs_are_enough_for_one_in_a_thousand():
    assert decide([2.0] * 20, 1e-3).ratios == [2.0] * 11
    assert decide([2.0] * 20, 1e-3).word == "faster"
    assert decide([0.5] * 20, 1e-3).word == "slower"
    assert len(decide([2.0] * 20, 1e-2).ratios) == 8


def test_where_strays_are_rare_three_ratios_far_away_are_enough():
    assert decide([2.0] * 20, 1e-3, strays_are_rare=True).ratios == [2.0] * 3
    assert decide([0.5] * 20, 1e-3, strays_are_rare=True) == decide([0.5] * 3, 1e-3, strays_are_rare=True)
    assert decide([0.5] * 3, 1e-3, strays_are_rare=True).word == "slower"
    assert len(decide([1.2, *[2.0] * 20], 1e-3, strays_are_rare=True).ratios) == 5
    assert len(decide([1.2] * 20, 1e-3, strays_are_rare=True).ratios) == 12


def test_a_third_ratio_changes_nothing_where_two_count_alike():
    source = random.Random(7)
    found = [[math.exp(source.gauss(0, 0.3)) for _ in range(3)] for _ in range(2000)]
    alike = [(one, other, third) for one, other, third in found if count_alike(one, other)]
    assert 400 < len(alike) < 1600
    for one, other, third in alike:
        between, middle = math.sqrt(one * other), sorted((one, other, third))[1]
        assert count_alike(between, middle)
        assert decide([between] * 50, 1e-3).word == decide([middle] * 50, 1e-3).word
    assert not count_alike(1.0, 0.99)
    assert not count_alike(1.01, 0.99)
    assert count_alike(1.01, 1.02)


def test_no_more_ratios_are_measured_than_are_needed():
    measured = iter([1.5] * 50)
    decide(measured, 1e-3)
    assert len(list(measured)) == 50 - 11


def test_evidence_is_the_mixture_that_the_docstring_says():
    steps = 100_000
    points = ((i + 0.5) / (2 * steps) + 0.5 for i in range(steps))
    mixture = sum((2 * p) ** 5 * (2 * (1 - p)) ** 2 for p in points) / steps
    assert float(evidence_of_signs(5, 2)) == pytest.approx(mixture / 2, rel=1e-6)
    assert evidence_of_signs(5, 0) == pytest.approx((2**5 + (2**6 - 1) / 6) / 2)


def test_without_a_difference_wrong_verdicts_stay_below_the_bound_wherever_one_stops():
    source = random.Random(7)
    words = [decide((source.choice((0.5, 2)) for _ in range(200)), 0.05).word for _ in range(2000)]
    assert 0 < words.count("faster") < 0.05 * 2000
    assert 0 < words.count("slower") < 0.05 * 2000


def test_wrong_verdicts_stay_below_the_bound_where_strays_are_just_as_rare_as_assumed():
    source = random.Random(7)

    def equal_but_for_strays():
        for _ in range(200):
            stray, sign = source.random() < 2 * RARE, source.choice((-1, 1))
            yield (2 * FAR if stray else 1.1) ** sign

    words = [decide(equal_but_for_strays(), 0.05, strays_are_rare=True).word for _ in range(2000)]
    assert 0 < words.count("faster") < 0.05 * 2000
    assert 0 < words.count("slower") < 0.05 * 2000


@pytest.mark.parametrize("probability", [0, 0.01, RARE])
def test_the_evidence_of_size_grows_with_strays_only(probability):
    expected = probability * evidence_of_size(1, 0) + (1 - probability) * evidence_of_size(0, 1)
    assert expected == pytest.approx(1) if probability == RARE else expected < 1
    assert evidence_of_size(3, 2) == pytest.approx(evidence_of_size(1, 0) ** 3 * evidence_of_size(0, 1) ** 2)


def test_strays_are_not_rare_before_anything_was_seen_and_when_there_are_many():
    watch = Strays()
    assert not watch.are_rare
    watch.add([0.0] * 8, true=0.0)
    assert watch.are_rare
    watch.add([math.log(5), math.log(5) + math.log(2), math.log(5)])
    assert watch.are_rare  # one of eleven, and all around 5 are as they should be
    watch.add([math.log(5), math.log(5) - math.log(2), math.log(5)])
    assert not watch.are_rare
    watch.add([0.0] * 60)
    assert watch.are_rare
    watch.add([])
    assert watch.are_rare


def test_strays_are_forgotten_when_the_machine_has_changed():
    watch = Strays(kept=10)
    watch.add([1.0] * 10, true=0.0)
    assert not watch.are_rare
    watch.add([0.0] * 10, true=0.0)
    assert watch.are_rare


def test_ratios_of_one_count_for_neither_side():
    assert decide(itertools.chain([2.0] * 10, [1.0] * 5), 1e-3).word == "undecided"
    assert decide([], 1e-3).ratios == []


def test_a_ratio_near_one_is_a_result_too():
    assert decide([1.0] * 100, 1e-3) == decide([1.0] * 11, 1e-3)
    assert decide([1.0] * 11, 1e-3).word == "as fast"
    turns = itertools.cycle([1.02, 1 / 1.02])
    assert decide(itertools.islice(turns, 80), 1e-3, strays_are_rare=True).word == "as fast"
    assert decide([1.02] * 80, 1e-3).word == "faster"  # both were shown
    turns = itertools.cycle([1.1, 1 / 1.1])
    assert decide(itertools.islice(turns, 80), 1e-3).word == "undecided"


@pytest.mark.parametrize("true", [SAME, 1 / SAME])
def test_what_is_just_too_far_away_is_called_as_fast_less_often_than_the_bound(true):
    source = random.Random(7)
    words = [
        decide((true * source.lognormvariate(0, 0.02) for _ in range(80)), 0.05).word for _ in range(2000)
    ]
    assert words.count("as fast") < 0.05 * 2000


@pytest.mark.parametrize("true", [0.95, 0.97, 0.985, 1.0, 1.015, 1.03, 1.05])
def test_less_than_one_race_in_a_hundred_stays_open_whatever_the_ratio(true):
    source = random.Random(7)
    words = [
        decide((true * source.lognormvariate(0, 0.02) for _ in range(120)), 1e-3).word for _ in range(500)
    ]
    assert words.count("undecided") < 5


@pytest.mark.parametrize("error", [0, 1, -1, float("nan")])
def test_a_bound_that_is_no_probability_is_refused(error):
    with pytest.raises(ValueError, match="a probability between 0 and 1"):
        decide([2.0], error)
