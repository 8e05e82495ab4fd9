"""What the judge says of two functions."""

from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Literal

from ..measuring.units import as_time, times
from ..show import visible

if TYPE_CHECKING:
    from ..measuring import duel

Word = Literal["faster", "as fast", "slower", "undecided", "wrong", "not run"]

ERROR = 1e-3
OWN_CODE = "For code of your own, the judge does without a sandbox: trusted=True, or --trusted."
MOST_SAID = 500  # characters of what another process says


@dataclass(frozen=True)
class Verdict:
    """Whether ``answer`` is right, and ``at_least`` times as fast as ``given``, on ``device``.

    ``word``: "faster" (than asked for), "as fast" (within 3 % of it), "slower", "undecided" (noise hides it),
    "wrong" (a result is not that of ``given``, or the answer raised or broke a rule), "not run" (nothing can
    be said). ``why`` is a sentence on the last three, otherwise "".

    ``ratio`` is how many times as fast the answer is, and ``interval`` holds the true one with at least 95 %
    confidence. ``answer_seconds`` and ``given_seconds`` are those of a call, on ``clock``. These are None
    where nothing was timed. ``logs`` are the log-ratios that the word rests on, one a launch; ``thrown_away``
    launches do not count, because something disturbed one side. ``error`` bounds the probability of each kind
    of wrong word: "faster", "as fast", "slower".
    """

    word: Word
    answer: str
    given: str
    at_least: float
    device: str = "cpu"
    why: str = ""
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    answer_seconds: float | None = None
    given_seconds: float | None = None
    clock: str = "cpu"
    logs: tuple[float, ...] = ()
    thrown_away: int = 0
    error: float = ERROR

    @property
    def fast_enough(self) -> bool:
        """Whether it is right, and as fast as was asked for."""
        return self.word in ("faster", "as fast")

    def __str__(self) -> str:
        """One line with the verdict; where something was timed, one more with the seconds of a call."""
        if self.ratio is None or self.interval is None:
            return f"{self.word}: {self.why}"
        low, high = map(times, self.interval)
        bound = f"wrong in at most 1 of {1 / self.error:,.0f} verdicts of each kind"
        both = ((self.answer, self.answer_seconds), (self.given, self.given_seconds))
        calls = ", ".join(f"{name} {as_time(seconds or 0)}" for name, seconds in both)
        return (
            f"{self.word}: {times(self.ratio)} as fast as {self.given} ({low} to {high}), "
            f"{times(self.at_least)} asked for; {self.why or bound}\na call: {calls} ({self.clock} time)"
        )

    def said(self, word: Word, why: str) -> "Verdict":
        """The same with this word, and why; the sentence may be another process's, or a duel's."""
        if word != "wrong":
            why = why.replace("'fast'", "the answer").replace("'slow'", "the given version")
        return replace(self, word=word, why=" ".join(visible(why).split())[:MOST_SAID])

    def timed(self, found: "duel.Verdict") -> "Verdict":
        """The same with what a duel of both found, "slow" (given) against "fast" (answer)."""
        return replace(
            self,
            word=found.word,
            why="the machine is too busy, or the ratio too near." if found.word == "undecided" else "",
            ratio=found.ratio.median,
            interval=(found.ratio.low, found.ratio.high),
            answer_seconds=median(found.seconds["fast"]),
            given_seconds=median(found.seconds["slow"]),
            clock=found.clock,
            logs=tuple(found.logs),
            thrown_away=found.thrown_away,
        )
