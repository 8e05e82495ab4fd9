import math
import random

import pytest

from autograder.measuring import decide as deciding
from autograder.measuring.decide import FAR, RARE, SAME, Strays, count_alike, decide


def words_of(ratios, error, races, **more):
    """The verdicts on many races; ``ratios()`` makes those of one."""
    return [decide(ratios(), error, **more).word for _ in range(races)]


def test_eleven_equal_signs_are_enough_for_one_in_a_thousand():
    measured = iter([2.0] * 20)
    assert decide(measured, 1e-3).ratios == [2.0] * 11
    assert len(list(measured)) == 20 - 11, "no more are measured than are needed"
    assert decide([2.0] * 20, 1e-3).word == "faster" and decide([0.5] * 20, 1e-3).word == "slower"
    assert len(decide([2.0] * 20, 1e-2).ratios) == 8 and decide([], 1e-3).ratios == []


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
    assert not count_alike(1.0, 0.99) and not count_alike(1.01, 0.99)
    assert count_alike(1.01, 1.02)


def test_evidence_is_the_mixture_that_the_docstring_says():
    steps = 100_000
    points = ((i + 0.5) / (2 * steps) + 0.5 for i in range(steps))
    mixture = sum((2 * p) ** 5 * (2 * (1 - p)) ** 2 for p in points) / steps
    assert float(deciding.evidence_of_signs(5, 2)) == pytest.approx(mixture / 2, rel=1e-6)
    assert deciding.evidence_of_signs(5, 0) == pytest.approx((2**5 + (2**6 - 1) / 6) / 2)


def test_without_a_difference_wrong_verdicts_stay_below_the_bound_wherever_one_stops():
    source = random.Random(7)

    equal = lambda: (source.choice((0.5, 2)) for _ in range(200))

    def equal_but_for_strays():
        for _ in range(200):
            stray, sign = source.random() < 2 * RARE, source.choice((-1, 1))
            yield (2 * FAR if stray else 1.1) ** sign

    for ratios, rare in ((equal, False), (equal_but_for_strays, True)):
        words = words_of(ratios, 0.05, 1000, strays_are_rare=rare)
        assert 0 < words.count("faster") < 0.05 * 1000 and 0 < words.count("slower") < 0.05 * 1000


def test_the_evidence_of_size_grows_with_strays_only():
    far, near = deciding.evidence_of_size(1, 0), deciding.evidence_of_size(0, 1)
    never, seldom, rare = (share * far + (1 - share) * near for share in (0, 0.01, RARE))
    assert never < 1 and seldom < 1 and rare == pytest.approx(1)
    assert deciding.evidence_of_size(3, 2) == pytest.approx(far**3 * near**2)


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
    watch.add([])
    assert watch.are_rare
    watch = Strays(kept=10)
    watch.add([1.0] * 10, true=0.0)
    assert not watch.are_rare
    watch.add([0.0] * 10, true=0.0)
    assert watch.are_rare, "they are forgotten when the machine has changed"


def test_a_ratio_near_one_is_a_result_too():
    assert decide([2.0] * 10 + [1.0] * 5, 1e-3).word == "undecided", "it counts for neither side"
    assert decide([1.0] * 100, 1e-3) == decide([1.0] * 11, 1e-3)
    assert decide([1.0] * 11, 1e-3).word == "as fast"
    assert decide([1.02, 1 / 1.02] * 40, 1e-3, strays_are_rare=True).word == "as fast"
    assert decide([1.02] * 80, 1e-3).word == "faster"  # both were shown
    assert decide([1.1, 1 / 1.1] * 40, 1e-3).word == "undecided"


def test_few_are_called_as_fast_that_are_just_too_far_away_and_few_races_stay_open():
    """With the noise of a quiet machine: no more than the bound, and less than one in a hundred."""
    source = random.Random(7)
    near = lambda true, launches: lambda: (true * source.lognormvariate(0, 0.02) for _ in range(launches))
    for true in (SAME, 1 / SAME):
        assert words_of(near(true, 80), 0.05, 2000).count("as fast") < 0.05 * 2000, true
    for true in (0.95, 0.97, 0.985, 1.0, 1.015, 1.03, 1.05):
        assert words_of(near(true, 120), 1e-3, 500).count("undecided") < 5, true


def test_a_bound_that_is_no_probability_is_refused():
    for error in (0, 1, -1, float("nan")):
        with pytest.raises(ValueError, match="a probability between 0 and 1"):
            decide([2.0], error)
