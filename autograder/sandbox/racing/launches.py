"""Launches of a race: fresh processes of both sides take turns, and give one ratio."""

import itertools
import math
import random
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from ...judging.calls import AnswerError
from ...judging.values import difference
from ...measuring.clocks import BLOCK_SECONDS, READINGS, BlockSearch, Function
from ...measuring.decide import Decision, count_alike
from ...measuring.duel import DuelError, Verdict, fresh_inputs, log_ratios, ratio_of_logs
from ..answers.answer_link import TimeLeft
from .side import Done, GivenInputs, Restless, Side, Start, told, without
from .undisturbed import FEW, SIDES, Launch, Undisturbed

PAIRS = 3  # at most, of a launch
FIRST_CALLS = 8  # at most, of a launch: they warm up, and their results are looked at again
MOST_LAUNCHES = 120
COPY_SECONDS = 60.0  # for a copy of a process; one with threads runs all its cells again
MOST_CALLS = 50
MOST_INPUT_BYTES = MOST_OUTPUT_BYTES = 32 << 20
MOST_MAKING = 0.06  # seconds for the inputs of one block
# What a side may spend on getting ready for its inputs, as a multiple of what the other does, and beyond it.
MUCH, MUCH_SECONDS = 1.5, 2e-5

# Not what given cells may seed: nobody is to know who comes first.
_DRAWN = random.SystemRandom()


class Launches:
    """Launches of both sides, one after the other; ``seconds`` per call of each side, a figure a pair.

    ``starts`` start a side each. ``shares``: an answer's result may share memory with its input. Below
    ``ratios`` is what differs for processes that are not forked: a subclass has it (``gpu.device_judge``).
    """

    most_launches, few_restless = MOST_LAUNCHES, FEW

    def __init__(
        self,
        starts: Mapping[str, Start],
        on: Function,
        threshold: float,
        tolerance: float | None,
        time_left: TimeLeft,
        shares: bool = False,
    ) -> None:
        self._starts, self._on, self._threshold, self._tolerance = starts, on, threshold, tolerance
        self._time, self._shares = time_left, shares
        self._calls: dict[str, int] = {}
        self._first_calls: dict[str, int] = {}
        self._restless = 0  # launches
        self._undisturbed = Undisturbed(0.0)
        self.seconds: dict[str, list[float]] = {name: [] for name in SIDES}
        self.given_seconds: list[float] = []  # per call, a launch each

    def plan(self) -> None:
        """What ``_plan`` does, once more where the machine worked beside it."""
        try:
            self._plan()
        except Restless:
            self._plan()

    def _plan(self) -> None:
        """Find how many calls make a block, with a copy of the given version's process.

        ``BLOCK_SECONDS`` or more of the given version, and of an answer that is just fast enough; both within
        what inputs and results may take. Raises ValueError where the inputs are always the same.
        """
        start = time.process_time()
        inputs, other = self._two_inputs()
        making = (time.process_time() - start) / 2
        with told("slow"):
            slow = self._starts["slow"](self._time.of_step(COPY_SECONDS))()
        try:
            slow.reserve([inputs, other])
            done = slow.run([inputs, inputs])
            most = min(
                MOST_CALLS,
                MOST_MAKING / max(making, 1e-6),
                MOST_INPUT_BYTES / max(inputs.inputs.size, 1),
                MOST_OUTPUT_BYTES / max(done.results[0].bytes, 1),
            )
            most = max(1, int(most))
            search = BlockSearch(most)
            took: list[float] = []  # by blocks of so many calls
            while not search.found or len(took) < READINGS:
                calls = search.calls
                block = [other, *itertools.islice(itertools.cycle([inputs, other]), calls)]
                took.append(max(slow.run(block).work, 1e-9))
                if not search.found:
                    search.take(took[-1])
                if search.calls != calls:
                    took.clear()
        finally:
            slow.kill()
            slow.await_end()
        seconds = median(took)
        self._undisturbed = Undisturbed(seconds / search.calls)
        enough = math.ceil(BLOCK_SECONDS * self._threshold * search.calls / seconds)
        self._calls = {"slow": search.calls, "fast": max(search.calls, min(most, enough))}
        self._first_calls = {name: min(calls, FIRST_CALLS) for name, calls in self._calls.items()}

    def ratios(self) -> Iterator[float]:
        """For each launch how many times as fast the answer is, over the threshold. After ``plan``."""
        ending: list[Side] = []
        try:
            for _ in range(self.most_launches):
                if not self._may_begin():
                    break
                sides: list[Side] = []
                pairs: list[dict[str, float]] = []
                start = time.monotonic()
                try:
                    # Both at once, while the last ones end: that takes longer than all that is timed.
                    waiting = []
                    for name in _DRAWN.sample(SIDES, 2):
                        with told(name):
                            left = self._time.of_step(COPY_SECONDS)
                            waiting.append((name, self._starts[name](left)))
                    for side in ending:
                        side.await_end()
                    for name, wait in waiting:
                        with told(name):
                            sides.append(wait())
                    # Some copies run all cells again: the submission's work, but not this cell's.
                    self._time.cell.put_off(time.monotonic() - start)
                    calls, before = self._first_calls, self._inputs()
                    for warm_up in (True,) + (False,) * PAIRS:
                        new = range(1, 1 + calls["fast"])
                        # What is not timed may be known.
                        inputs = [before, *(self._inputs() for _ in new)]
                        before = inputs[-1]
                        part = [0, *_DRAWN.sample(new, calls["slow"])]
                        done: dict[str, Done] = {}
                        for side in _DRAWN.sample(sides, 2):
                            side.reserve(inputs)
                            block = inputs if side.name == "fast" else [inputs[which] for which in part]
                            done[side.name] = side.run(block, warm_up)
                        self._compare(done["fast"], done["slow"], part)
                        if warm_up:
                            calls = self._warmed_up(done)
                            continue
                        pairs.append(self._per_call(done, calls))
                        shown = [pair["slow"] / pair["fast"] / self._threshold for pair in pairs]
                        if len(shown) == 2 and count_alike(*shown):
                            break  # a third could not change what the median of three says
                except Restless as found:
                    self._restless += 1
                    if self._restless > self.few_restless:
                        found.side.refuse()
                    continue
                finally:
                    ending = sides
                    for side in ending:
                        side.kill()
                yield from map(self._ratio, self._counting(pairs))
            yield from map(self._ratio, self._undisturbed.rest())
        finally:
            for side in ending:
                side.await_end()

    def verdict(self, decision: Decision, clock: str, signs_only: bool) -> Verdict:
        """What was decided from these launches. Raises DuelError where there was no time for one."""
        if not decision.ratios:
            raise DuelError("there was no time left for this race.")
        logs = [math.log(ratio * self._threshold) for ratio in decision.ratios]
        ratio = ratio_of_logs(logs)
        # Because something made a side slow, or a side did not rest.
        thrown_away = self._undisturbed.thrown_away + self._restless
        return Verdict(
            decision.word, ratio, self._threshold, self.seconds, clock, logs, thrown_away, signs_only
        )

    def _may_begin(self) -> bool:
        """Whether there is time for a launch."""
        return self._time.of_cell() > 0

    def _inputs(self) -> GivenInputs:
        return GivenInputs(fresh_inputs(self._on, secrets.randbits(63), "cpu"))

    def _two_inputs(self) -> tuple[GivenInputs, GivenInputs]:
        """The inputs of two calls. Raises ValueError where they are the same."""
        first, second = self._inputs(), self._inputs()
        if difference(first.values, second.values) is None:
            raise ValueError("`on` makes the same inputs each time: an answer could keep its results.")
        return first, second

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

    def _warmed_up(self, done: Mapping[str, Done]) -> dict[str, int]:
        """Calls for the blocks of a launch, after its first ones: a slow answer needs no more than given."""
        first = done["fast"]
        least = min(result.seconds for result in first.results[1:]) * first.work / first.seconds
        enough = math.ceil(1.25 * BLOCK_SECONDS / max(least, 1e-9))
        return self._calls | {"fast": max(self._calls["slow"], min(enough, self._calls["fast"]))}

    def _per_call(self, done: Mapping[str, Done], calls: Mapping[str, int]) -> dict[str, float]:
        """Seconds per call of each side, without the way to and from its process.

        The answer could make its calls without work as long as it likes: no more counts than for the other.
        """
        ways = {name: done[name].way / calls[name] for name in SIDES}
        taken_off = {"slow": ways["slow"], "fast": min(ways.values())}
        per_call = {name: without(done[name].seconds / calls[name], taken_off[name]) for name in SIDES}
        ready = {name: done[name].ready / calls[name] for name in SIDES}
        for took in (ready, ways):
            per_call["fast"] += max(0.0, took["fast"] - MUCH * took["slow"] - MUCH_SECONDS)
        return {name: max(seconds, 1e-9) for name, seconds in per_call.items()}

    def _counting(self, launch: Launch) -> Iterator[Launch]:
        """Those launches that count now that this one is there. Raises TooNoisy."""
        return self._undisturbed.take(launch)

    def _ratio(self, launch: Launch) -> float:
        """The median over pairs of given / answer, over the threshold; keeps the seconds per call of both."""
        taken = {name: [pair[name] for pair in launch] for name in SIDES}
        for name in SIDES:
            self.seconds[name] += taken[name]
        self.given_seconds.append(median(taken["slow"]))
        return math.exp(median(log_ratios(taken["slow"], taken["fast"]))) / self._threshold
