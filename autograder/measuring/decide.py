"""Is a ratio above or below 1? Measure again and again, and stop when the evidence is enough."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb
from typing import Literal

Word = Literal["faster", "slower", "undecided"]


@dataclass(frozen=True)
class Decision:
    """``word`` is "faster" (the median ratio is above 1), "slower" (below 1) or "undecided".

    ``ratios`` are those that it rests on, in their order.
    """

    word: Word
    ratios: list[float] = field(default_factory=list)


def decide(ratios: Iterable[float], error: float) -> Decision:
    """Take ratios until they show whether their median is above or below 1.

    ``ratios`` are independent measurements, one a launch: how many times as fast, over how many times as
    fast was asked for. They are taken one at a time, and no more than are needed. Each of the two wrong
    verdicts has a probability of at most ``error``, however many ratios there are; if they run out before,
    the verdict is "undecided". Raises ValueError for an ``error`` that is not between 0 and 1.

    The test is a sequential sign test. Under "the median is 1 or below" the evidence for "faster" is an
    e-process: the probability that it ever reaches 1 / ``error`` is at most ``error`` (Ville's inequality;
    Ramdas and others, Game-theoretic statistics and safe anytime-valid inference, 2023). Half of the bet is
    on "all signs are equal", half is spread evenly over all probabilities from 1/2 to 1: so a run of equal
    signs reaches 1,000 after 11 values, and a few signs the other way only delay it. A ratio of exactly 1
    counts for neither side.
    """
    if not 0 < error < 1:
        raise ValueError(f"the bound on errors is a probability between 0 and 1, not {error!r}.")
    seen: list[float] = []
    above = below = 0
    for ratio in ratios:
        seen.append(ratio)
        above += ratio > 1
        below += ratio < 1
        if evidence(above, below) >= 1 / error:
            return Decision("faster", seen)
        if evidence(below, above) >= 1 / error:
            return Decision("slower", seen)
    return Decision("undecided", seen)


@functools.cache
def evidence(successes: int, failures: int) -> Fraction:
    """The evidence against "successes are no likelier than failures".

    Half 2^n if all n were successes, half the mean of (2p)^successes (2(1 - p))^failures over p in [1/2, 1].
    """
    number = successes + failures
    tail = sum(comb(number + 1, j) for j in range(successes + 1))
    spread = Fraction(tail, (number + 1) * comb(number, successes))
    return (spread + (2**number if failures == 0 else 0)) / 2
