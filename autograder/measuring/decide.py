"""A sequential sign test: look after every launch, stop when the evidence is enough, keep the error bound."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction
from math import comb


@dataclass
class SignTest:
    """Is a median above or below zero? Evidence grows with every value, for each side.

    ``faster`` is an e-process against "the median is 0 or below", ``slower`` one against "0 or above". If
    such a hypothesis is true, its evidence ever reaches 1 / error with a probability of at most ``error``,
    whenever one stops (Ville's inequality; Ramdas and others, Game-theoretic statistics and safe
    anytime-valid inference, 2023). Half of the bet is on "all signs are equal", half is spread evenly over
    all probabilities from 1/2 to 1; so a run of equal signs reaches 1,000 after 11 values, and a few signs
    the other way only delay it.
    """

    above: int = 0
    below: int = 0

    def add(self, value: float) -> None:
        """Take one more value into account; exact zeros count for neither side."""
        self.above += value > 0
        self.below += value < 0

    @property
    def faster(self) -> float:
        return float(_evidence(self.above, self.above + self.below))

    @property
    def slower(self) -> float:
        return float(_evidence(self.below, self.above + self.below))

    def word(self, error: float) -> str:
        """The verdict so far, "faster", "slower" or "undecided", with ``error`` as bound for each side."""
        if self.faster >= 1 / error:
            return "faster"
        return "slower" if self.slower >= 1 / error else "undecided"


@functools.cache
def _evidence(successes: int, number: int) -> Fraction:
    """Half 2^number if all were successes, half the mean of (2p)^successes (2(1 - p))^failures over p."""
    tail = sum(comb(number + 1, j) for j in range(successes + 1))
    spread = Fraction(tail, (number + 1) * comb(number, successes))
    return (spread + (2**number if successes == number else 0)) / 2
