"""Is a ratio above or below 1? Measure again and again, and stop when the evidence is enough."""

import functools
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, log
from statistics import median
from typing import Literal

Word = Literal["faster", "as fast", "slower", "undecided"]

# A stray is a ratio that is too high, or too low, by more than the factor FAR. Where a stray of each kind has
# a probability of at most RARE, a ratio beyond FAR says much more than its sign.
FAR, RARE = 1.5, 0.05
SAME = 1.03  # a ratio within this factor of 1 is a result of its own
SHARE = 0.2  # of the evidence that rests on strays being rare
STAKE = 0.95  # of that, on the next ratio being beyond FAR


@dataclass(frozen=True)
class Decision:
    """``word`` is "faster" (the median ratio is above 1), "slower" (below 1), "as fast" (within a factor of
    ``SAME``) or "undecided".

    ``ratios`` are those that it rests on, in their order.
    """

    word: Word
    ratios: list[float]


def decide(ratios: Iterable[float], error: float, *, strays_are_rare: bool = False) -> Decision:
    """Take ratios until they show whether the true one is above or below 1, or so near that it is the same.

    ``ratios`` are independent measurements, one a launch: how many times as fast, over how many times as
    fast was asked for. They are taken one at a time, and no more than are needed. Each of the three wrong
    verdicts has a probability of at most ``error``, however many ratios there are; if they run out before,
    the verdict is "undecided". Raises ValueError for an ``error`` that is not between 0 and 1.

    What is assumed: a ratio is as likely to be too high as too low; with ``strays_are_rare`` also that it is
    too high by more than the factor ``FAR``, or too low by more, with a probability of at most ``RARE`` each.
    ``Strays`` watches whether that holds.

    The test is sequential. Under "the true ratio is 1 or below" the evidence for "faster" is an e-process:
    the probability that it ever reaches 1 / ``error`` is at most ``error`` (Ville's inequality; Ramdas and
    others, Game-theoretic statistics and safe anytime-valid inference, 2023). A ratio of exactly 1 counts for
    neither side. Three ratios beyond ``FAR`` are enough for 1 in 1,000, without the second assumption eleven
    equal signs. "As fast" needs evidence against both "above ``SAME``" and "below 1 / ``SAME``".
    """
    if not 0 < error < 1:
        raise ValueError(f"the bound on errors is a probability between 0 and 1, not {error!r}.")
    seen: list[float] = []
    above = below = far_above = far_below = under_most = over_least = 0
    for ratio in ratios:
        seen.append(ratio)
        under_most, over_least = under_most + (ratio < SAME), over_least + (ratio > 1 / SAME)
        above, far_above = above + (ratio > 1), far_above + (ratio > FAR)
        below, far_below = below + (ratio < 1), far_below + (ratio < 1 / FAR)
        faster, slower = evidence_of_signs(above, below), evidence_of_signs(below, above)
        if strays_are_rare:
            faster = (1 - SHARE) * faster + SHARE * evidence_of_size(far_above, len(seen) - far_above)
            slower = (1 - SHARE) * slower + SHARE * evidence_of_size(far_below, len(seen) - far_below)
        if faster >= 1 / error:
            return Decision("faster", seen)
        if slower >= 1 / error:
            return Decision("slower", seen)
        if all(evidence_of_signs(n, len(seen) - n) >= 1 / error for n in (under_most, over_least)):
            return Decision("as fast", seen)
    return Decision("undecided", seen)


def count_alike(one: float, other: float) -> bool:
    """Whether two ratios say the same to ``decide``: so does each ratio between them, and the median of these
    two and any third.
    """
    limits = (FAR, SAME, 1.0, 1 / SAME, 1 / FAR)
    return all((one > limit, one < limit) == (other > limit, other < limit) for limit in limits)


@functools.cache
def evidence_of_signs(successes: int, failures: int) -> float:
    """The evidence against "successes are no likelier than failures".

    Half of the bet is on "all signs are equal", half is spread evenly over all probabilities p from 1/2 to 1:
    half 2^n if all n were successes, half the mean of (2p)^successes (2(1 - p))^failures.
    """
    number = successes + failures
    tail = sum(comb(number + 1, j) for j in range(successes + 1))
    spread = Fraction(tail, (number + 1) * comb(number, successes))
    return float(spread + (2**number if failures == 0 else 0)) / 2


@functools.cache
def evidence_of_size(far: int, near: int) -> float:
    """The evidence against "a ratio beyond ``FAR`` has a probability of at most ``RARE``"."""
    return (STAKE / RARE) ** far * ((1 - STAKE) / (1 - RARE)) ** near


class Strays:
    """Watches how many of the last ``kept`` launches were strays, of whatever was timed."""

    def __init__(self, kept: int = 200) -> None:
        self._seen: deque[bool] = deque(maxlen=kept)

    def add(self, logs: Sequence[float], true: float | None = None) -> None:
        """Take the log-ratios of one race's launches; ``true`` is their true log-ratio, if it is known."""
        middle = median(logs) if true is None and logs else true or 0.0
        self._seen.extend(abs(value - middle) > log(FAR) for value in logs)

    @property
    def are_rare(self) -> bool:
        """Whether what was seen agrees with it. Before anything was seen it does not."""
        return bool(self._seen) and sum(self._seen) <= 1 + RARE * len(self._seen)

    @property
    def share(self) -> float:
        """Of the launches that were seen; 0 before there were any."""
        return sum(self._seen) / max(1, len(self._seen))
