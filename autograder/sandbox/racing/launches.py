"""Launches of a race: both sides start afresh, take turns, and give one ratio. How they start and what their
clock is, ``Sides`` knows: forked processes (``side``), or processes on a device (``gpu.device_judge``).
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, NoReturn, Protocol

from ...judging.calls import AnswerError
from ...judging.values import difference
from ...measuring.decide import count_alike, decide
from ...measuring.duel import DuelError, Verdict, log_ratios, ratio_of_logs
from ..answers.answer_handle import Ended
from ..wire.channel import Gone, Malformed, TooLate
from ..wire.encode import Inputs
from ..wire.messages import Value
from .undisturbed import SIDES, Launch

PAIRS = 3  # at most, of a launch
FIRST_CALLS = 8  # at most, of a launch: they warm up, and their results are looked at again

# Not what given cells may seed: nobody is to know who comes first.
_DRAWN = random.SystemRandom()


class GivenInputs:
    """The inputs of one call, ready to be given to either side."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self._values = values  # the memory that is compared with what a side has left of it
        self.tensors: list[Value] = []
        self.inputs = Inputs(ready=self.tensors)
        self.nodes = [self.inputs.node(value) for value in values]


@dataclass
class Result:
    """One call: its result as it came and as it was read, its bytes, and what it did to its inputs.

    ``seconds`` on the race's clock from when the inputs were there until the result was read, the same for
    getting ready, and of wall time.
    """

    node: Value
    value: Any
    bytes: int
    shares_input: bool = False
    changed_input: bool = False
    seconds: float = 0.0
    ready: float = 0.0
    wall: float = 0.0


@dataclass
class Done:
    """Calls that were done: the results of all, and the seconds per call of all but the first.

    ``ways`` are seconds of calls without their work. ``changed``: a result was changed by a later call.
    """

    results: list[Result]
    ways: list[float]
    seconds: float
    changed: bool = False


class Side(Protocol):
    """One side of a race for one launch."""

    name: str

    def prepare(self, inputs: Sequence[GivenInputs]) -> None:
        """Get ready for calls with any of these inputs. Raises Restless."""

    def run(self, block: Sequence[GivenInputs], warm_up: bool = False) -> Done:
        """Do these calls, one after the other; the first is not timed. Raises DuelError, Restless."""

    def refuse(self) -> NoReturn:
        """Raise AnswerError, because it is restless too often."""


class Sides(Protocol):
    """Both sides of a race. Of ``calls`` of each a block is made, once there is a plan.

    ``thrown_away`` launches do not count; more restless ones than ``most_restless`` are no accident.
    """

    clock: str
    calls: dict[str, int]
    most_launches: int
    most_restless: int

    @property
    def thrown_away(self) -> int: ...

    def plan(self, inputs: GivenInputs, other: GivenInputs, making: float) -> None:
        """Find how many calls make a block, with the given version; to make inputs takes ``making`` seconds.

        Raises DuelError.
        """

    def start(self, order: Sequence[str]) -> Sequence[Side]:
        """Start both for a launch, in this order; none where no time is left. Raises DuelError."""

    def warmed_up(self, done: Mapping[str, Done]) -> Mapping[str, int]:
        """The calls of the launch's blocks, after its first calls."""

    def per_call(self, done: Mapping[str, Done]) -> dict[str, float]:
        """Seconds per call of each side, without the way to and from its process."""

    def stop(self) -> None:
        """End the launch."""

    def counting(self, launches: Iterable[Launch]) -> Iterator[Launch]:
        """Those launches that count. Raises TooNoisy."""


class Restless(AnswerError):
    """A side took time while it was stopped: it goes on by itself, or the machine was stopped just then.

    The launch does not count.
    """

    def __init__(self, side: Side) -> None:
        super().__init__("failed", "not timed, because a process went on while it was stopped.")
        self.side = side


class Launches:
    """Launches of both sides, one after the other; ``seconds`` per call of each side, a figure a pair.

    ``make`` makes the inputs of a call. ``shares``: an answer's result may share memory with its input.
    """

    def __init__(
        self,
        sides: Sides,
        make: Callable[[], tuple[Any, ...]],
        threshold: float,
        tolerance: float | None = None,
        shares: bool = False,
    ) -> None:
        self._sides, self._make, self._threshold = sides, make, threshold
        self._tolerance, self._shares = tolerance, shares
        self._restless = 0  # launches
        self.seconds: dict[str, list[float]] = {name: [] for name in SIDES}

    def verdict(self, error: float, strays_are_rare: bool = False) -> Verdict:
        """Whether the answer is fast enough, wrong with at most this probability of each kind.

        Raises what ``ratios`` raises, and DuelError where there was no time for a launch.
        """
        decision = decide(self.ratios(), error, strays_are_rare=strays_are_rare)
        logs = [math.log(ratio * self._threshold) for ratio in decision.ratios]
        if not logs:
            raise DuelError("there was no time left for this race.")
        return Verdict(
            decision.word,
            ratio_of_logs(logs),
            self._threshold,
            self.seconds,
            self._sides.clock,
            logs,
            self._sides.thrown_away + self._restless,
            signs_only=not strays_are_rare,
        )

    def ratios(self) -> Iterator[float]:
        """For each launch how many times as fast the answer is, over the threshold.

        Raises ValueError where the inputs are always the same, AnswerError where a result is wrong or rules
        are broken, DuelError, TooNoisy.
        """
        start = time.process_time()
        first, second = self._make(), self._make()
        making = (time.process_time() - start) / 2
        if difference(first, second) is None:
            raise ValueError("`on` makes the same inputs each time: an answer could keep its results.")
        self._sides.plan(GivenInputs(second), GivenInputs(first), making)
        return map(self._ratio, self._sides.counting(self._launches()))

    def _launches(self) -> Iterator[Launch]:
        for _ in range(self._sides.most_launches):
            try:
                pairs = self._launch()
            except Restless as found:
                self._restless += 1
                if self._restless > self._sides.most_restless:
                    found.side.refuse()
                continue
            finally:
                self._sides.stop()
            if not pairs:
                break
            yield pairs

    def _launch(self) -> list[dict[str, float]]:
        """Seconds per call of each side, for each pair of blocks; none where no time is left."""
        pairs: list[dict[str, float]] = []
        if not (sides := self._sides.start(_DRAWN.sample(SIDES, 2))):
            return pairs
        calls: Mapping[str, int] = {name: min(self._sides.calls[name], FIRST_CALLS) for name in SIDES}
        before = GivenInputs(self._make())
        for warm_up in (True,) + (False,) * PAIRS:
            new = range(1, 1 + calls["fast"])
            # What is not timed may be known.
            inputs = [before, *(GivenInputs(self._make()) for _ in new)]
            before = inputs[-1]
            part = [0, *_DRAWN.sample(new, calls["slow"])]
            done: dict[str, Done] = {}
            for side in _DRAWN.sample(sides, 2):
                side.prepare(inputs)
                block = inputs if side.name == "fast" else [inputs[which] for which in part]
                done[side.name] = side.run(block, warm_up)
            self._compare(done["fast"], done["slow"], part)
            if warm_up:
                calls = self._sides.warmed_up(done)
                continue
            pairs.append(self._sides.per_call(done))
            if len(pairs) == 2 and count_alike(*map(self._over_threshold, pairs)):
                break  # a third could not change what the median of three says
        return pairs

    def _compare(self, fast: Done, slow: Done, part: Sequence[int]) -> None:
        """Raise AnswerError where the answer's results, or what else it did, are not as the given version's.

        The given version did the calls in ``part``.
        """
        for expected, which in zip(slow.results, part, strict=True):
            got = fast.results[which]
            if found := difference(got.value, expected.value, None, self._tolerance):
                raise AnswerError("failed", f"a result was wrong while it was timed: {found}")
            if got.changed_input and not expected.changed_input:
                raise AnswerError("failed", "a call changed its input, which must be left alone.")
            if got.shares_input and not (expected.shares_input or self._shares):
                raise AnswerError(
                    "failed", "a result shares memory with its input, and did not when it was checked."
                )
        if fast.changed and not slow.changed:
            raise AnswerError("failed", "a call changed the result of the one before.")

    def _over_threshold(self, pair: Mapping[str, float]) -> float:
        return pair["slow"] / pair["fast"] / self._threshold

    def _ratio(self, launch: Launch) -> float:
        """The median over pairs of given / answer, over the threshold; keeps the seconds per call of both."""
        taken = {name: [pair[name] for pair in launch] for name in SIDES}
        for name in SIDES:
            self.seconds[name] += taken[name]
        return math.exp(median(log_ratios(taken["slow"], taken["fast"]))) / self._threshold


@contextmanager
def told(name: str, seconds: float) -> Iterator[None]:
    """Say whose process failed, and that it had so many seconds for a call."""
    try:
        yield
    except TooLate as error:
        raise DuelError(f"{name!r} did not return within {seconds:g} s a call.{error}") from None
    except (Ended, Gone) as error:
        raise DuelError(f"{name!r} ended its process{f': {error}' if str(error) else ''}.") from None
    except Malformed as error:
        raise DuelError(f"{name!r} sent {error}.") from None
