"""Which launches of a race count, where something made a side slow."""

import pytest

from autograder.measuring.selfcheck import TooNoisy
from autograder.sandbox.racing.undisturbed import FEW, MOST_THROWN_AWAY, Undisturbed


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
    assert list(race.take(ANSWER)) == []
    assert list(race.take(USUAL)) == [USUAL]
    assert kept([ANSWER]) == [ANSWER], "nothing shows that the answer is usually faster"


def test_an_answer_that_is_slow_now_and_then_is_no_noise() -> None:
    assert kept([USUAL, *[ANSWER] * 5]) == [USUAL, *[ANSWER] * (5 - FEW)]


def test_a_machine_that_disturbs_the_given_version_too_often_cannot_judge() -> None:
    most = MOST_THROWN_AWAY
    with pytest.raises(TooNoisy, match=rf"in {most + 1} of {most + 2} launches the given version took more"):
        kept([USUAL, *[GIVEN] * (most + 1)])
