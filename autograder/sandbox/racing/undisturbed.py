"""Which launches of a race count: those in which nothing beside it made one of the two sides slow."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from ...measuring.decide import FAR
from ...measuring.duel import TooNoisy

SIDES = ("slow", "fast")  # the given version, and the answer
MOST_THROWN_AWAY = 8  # launches, and more than are kept: then the machine is too busy
FEW = 2  # launches more that are thrown away because of the answer than because of the given version

Launch = Sequence[Mapping[str, float]]  # pairs: seconds per call of each side


class Undisturbed:
    """Takes the launches of a race, and gives those that count.

    ``planned`` are the seconds that a call of the given version took before them.
    """

    def __init__(self, planned: float) -> None:
        self._planned = planned
        self._best = dict.fromkeys(SIDES, math.inf)  # seconds of each side in its best launch
        self._held: list[Launch] = []
        self._taken = self._kept = 0
        self._thrown = dict.fromkeys(SIDES, 0)

    @property
    def thrown_away(self) -> int:
        """How many launches do not count."""
        return sum(self._thrown.values())

    def take(self, launch: Launch) -> Iterator[Launch]:
        """Those launches that count now that this one is there. Raises TooNoisy."""
        self._best = {name: min(self._best[name], _typical(launch, name)) for name in SIDES}
        self._held.append(launch)
        self._taken += 1
        if self._taken > 1:  # one alone does not show what an answer usually takes
            yield from self.rest()

    def rest(self) -> Iterator[Launch]:
        """Those that count of the launches that nothing was said of yet. Raises TooNoisy."""
        held, self._held = self._held, []
        for launch in held:
            side = self._disturbed(launch)
            # Not more often for the answer: one that is slow now and then is no noise.
            if side == "slow" or (side == "fast" and self._thrown["fast"] < self._thrown["slow"] + FEW):
                self._thrown[side] += 1
                if self._thrown["slow"] > max(MOST_THROWN_AWAY, self._kept):
                    raise TooNoisy(
                        f"in {self._thrown['slow']} of {self.thrown_away + self._kept} launches the given "
                        f"version took more than {FAR:g} times as long as in others."
                    )
            else:
                self._kept += 1
                yield launch

    def _disturbed(self, launch: Launch) -> str | None:
        """The side that something beside it made slow. Where both were slow, neither had an advantage.

        It is looked for on both, or noise would speak against the answer.
        """
        usual = {"slow": max(self._best["slow"], self._planned), "fast": self._best["fast"]}
        slow = [name for name in SIDES if _typical(launch, name) > FAR * usual[name]]
        return slow[0] if len(slow) == 1 else None


def _typical(launch: Launch, name: str) -> float:
    """Seconds per call of one side in a launch."""
    return median(pair[name] for pair in launch)
