"""A race between two processes, neither of which is believed: the code that decides the points for speed.

Both sides are copies of processes that were forked from the same one, pinned to the same core, and stopped
while the other runs. The same code in two processes can differ by tens of per cent, for as long as they live,
so the unit of evidence is the *launch*: copy both sides in random order, warm up, time a few
pairs of blocks, keep one ratio. The judge makes all inputs, a different one for each call, and reads the
kernel's CPU clocks of everything that lives in a side's namespaces. Both sides take the inputs of all calls
and hand over as many results; what the answer's side needs for that beyond the other is added to its calls,
so nothing is gained by computing early or late.
"""

from __future__ import annotations

import math
import os
import random
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch

from ..judging.calls import AnswerError
from ..judging.values import difference
from ..measuring.clocks import BLOCK_SECONDS, BlockSearch
from ..measuring.decide import decide
from ..measuring.duel import DuelError, Verdict, check_threshold, fresh_inputs, log_ratios, ratio_of_logs
from . import decode, linux
from .answer_link import TimeLeft
from .answer_process import AnswerProcess, Connection, Ended
from .channel import Gone, Malformed, TooLate
from .encode import Inputs
from .messages import (
    FetchResults,
    Found,
    ObjectNode,
    PrepareRace,
    RaceInputs,
    RaceReady,
    Raised,
    Target,
    Value,
)
from .shared_memory import SharedMemory

# A wrong verdict of each kind has a probability of at most 1 in 1,000, and a race that noise left undecided
# is judged a second time: so the two share it. The first's share still decides after eleven equal signs.
ERRORS = {"now": 8.4e-4, "later": 8.4e-4, "again": 1.6e-4}

PAIRS, WARM_UPS = 3, 1
MOST_LAUNCHES = 80
CALL_SECONDS = 10.0
MOST_CALLS = 200
MOST_INPUT_BYTES = 32 << 20
# The results of a turn's calls are there at once. More than this, and they lie in new memory, which has to be
# got from the kernel and cleared; but a turn of a single short call finds the caches cold.
MOST_OUTPUT_BYTES = 8 << 20
MOST_MAKING = 0.06  # seconds for the inputs of one block
FEW_CALLS, FEW_MAKING = 16, 0.02  # what it is worth to have blocks of equal length
MOST_TURNS = 8
FEW_WAITS = 3  # a side that only computes waits for the signal to start, to be let go on, and after the end
# What a side may spend on inputs and results beyond what the other side needs for as many.
SLACK_FACTOR, SLACK_SECONDS = 1.2, 30e-6

SIDES = ("slow", "fast")  # the given version, and the answer


@dataclass
class Turn:
    """The machine is ours for one race; ``logs`` are the log-ratios of its launches."""

    strays_are_rare: bool
    logs: list[float] = field(default_factory=list)


class TimedRace:
    """Races of one submission. ``names`` are those of the judge's notebook.

    ``given`` gives the process that ran the given cells only; ``timing`` has the machine alone; ``error``
    bounds the probability of each kind of wrong verdict.
    """

    names: Mapping[str, object]

    def __init__(
        self,
        answer: AnswerProcess,
        given: Callable[[], AnswerProcess],
        time_left: TimeLeft,
        timing: Callable[[], AbstractContextManager[Turn]],
        error: float,
    ) -> None:
        self._answer, self._given, self._time, self._timing = answer, given, time_left, timing
        self._error = error

    def duel(
        self,
        target: Target,
        against: Callable[..., object],
        on: Callable[..., object],
        *,
        threshold: float,
        tolerance: float | None,
        **_: object,
    ) -> Verdict:
        """Whether the answer is ``threshold`` times as fast as ``against`` (see ``judging.answer``).

        Raises DuelError where a side cannot be timed, AnswerError where a result is wrong or the rules are
        broken, TypeError and ValueError where the race makes no sense.
        """
        check_threshold(threshold)
        given = next((name for name, value in self.names.items() if value is against), None)
        if given is None:
            raise ValueError("the given version of a race must be defined in a cell of the notebook.")
        if target.name is None or target.of is not None:
            raise TypeError("a race needs a function that the answer defines, not an object's method.")
        processes = {"slow": (given, self._given()), "fast": (target.name, self._answer)}
        with self._timing() as turn, linux.one_core_kept_free() as core:
            for name, side in processes.items():
                with _told(name):
                    side[1].use(self._time.of_cell())
            launches = Launches(processes, on, threshold, tolerance, self._time, core)
            launches.plan()
            decision = decide(launches.ratios(), self._error, strays_are_rare=turn.strays_are_rare)
            turn.logs = [math.log(ratio * threshold) for ratio in decision.ratios]
        if not turn.logs:
            raise DuelError("there was no time left for this race.")
        ratio = ratio_of_logs(turn.logs)
        return Verdict(decision.word, ratio, threshold, launches.seconds, "cpu", turn.logs)


class Launches:
    """Launches of both sides, one after the other; ``seconds`` per call of each side, a figure a pair.

    ``processes`` has for each side the name of its function, and the process to copy. On the core ``core``
    (None: any).
    """

    def __init__(
        self,
        processes: Mapping[str, tuple[str, AnswerProcess]],
        on: Callable[..., object],
        threshold: float,
        tolerance: float | None,
        time_left: TimeLeft,
        core: int | None,
    ) -> None:
        self._processes, self._on, self._threshold, self._tolerance = processes, on, threshold, tolerance
        self._time, self._core = time_left, core
        self._turns: list[tuple[int, int]] = []  # of a block: how many calls each side does in one go
        self._idle = 0.0  # CPU seconds of a turn without calls
        self.seconds: dict[str, list[float]] = {name: [] for name in SIDES}

    def plan(self) -> None:
        """Find how many calls make a block, with a copy of the given version's process.

        ``BLOCK_SECONDS`` or more of the given version, and of an answer that is just fast enough; both within
        what inputs and results may take. Raises ValueError where the inputs are always the same.
        """
        start = time.process_time()
        first, second = self._inputs(), self._inputs()
        making = (time.process_time() - start) / 2
        if difference(first, second) is None:
            raise ValueError("`on` makes the same inputs each time: an answer could keep its results.")
        name, process = self._processes["slow"]
        with _told("slow"):
            copy = process.start_copy(self._time.of_cell())
        slow = Side("slow", name, process, copy, self._core, self._time)
        try:
            block, nothing = TurnInputs([second]), TurnInputs([])
            slow.reserve(block)
            slow.run(block, [0])
            _, size = slow.results(1)
            in_turn = min(
                MOST_CALLS, MOST_INPUT_BYTES / max(block.inputs.size, 1), MOST_OUTPUT_BYTES / max(size, 1)
            )
            in_turn = max(1, int(in_turn))
            most = max(1, int(min(MOST_TURNS * in_turn, MOST_CALLS, MOST_MAKING / max(making, 1e-6))))
            search, seconds, idle = BlockSearch(most), 0.0, []
            while not search.found or not seconds:
                seconds = 0.0
                for number in _split(search.calls, in_turn):
                    block = TurnInputs([self._inputs() for _ in range(number)])
                    slow.reserve(block)
                    idle.append(slow.run(nothing, []).calls)
                    seconds += max(slow.run(block, block.all).calls - min(idle), 1e-9)
                search.take(seconds)
        finally:
            slow.kill()
            slow.await_end()
        self._idle = min(idle)
        enough = math.ceil(BLOCK_SECONDS * self._threshold * search.calls / seconds)
        # What a block costs once, such as finding the caches cold, weighs on both sides alike where their
        # blocks are equally long: those of an answer that is just fast enough, as far as that is cheap.
        equal = math.ceil(search.calls * self._threshold)
        equal = min(equal, FEW_CALLS, int(FEW_MAKING / max(making, 1e-6)))
        fast = max(search.calls, min(most, max(enough, equal)))
        if fast <= in_turn:
            self._turns = [(search.calls, fast)]
        else:
            self._turns = [(number, number) for number in _split(fast, in_turn)]

    def ratios(self) -> Iterator[float]:
        """For each launch how many times as fast the answer is, over the threshold. After ``plan``."""
        ending: list[Side] = []
        try:
            for _ in range(MOST_LAUNCHES):
                if self._time.is_over():
                    return
                sides: dict[str, Side] = {}
                try:
                    names = random.sample(SIDES, 2)
                    # Both at once, while the last ones end: that takes longer than all that is timed.
                    copies = []
                    for name in names:
                        with _told(name):
                            copies.append(self._processes[name][1].start_copy(self._time.of_cell()))
                    for side in ending:
                        side.await_end()
                    for name, copy in zip(names, copies, strict=True):
                        sides[name] = Side(name, *self._processes[name], copy, self._core, self._time)
                    pairs = []
                    for _ in range(WARM_UPS + PAIRS):
                        # The first turn, of a single call, finds the caches cold, and does not count.
                        turns = [self._turn(*calls) for calls in ((1, 1), *self._turns)]
                        pair = {name: Done() for name in SIDES}
                        for name in random.sample(SIDES, 2):
                            sides[name].reserve(*turns)
                            for turn in turns:
                                part = turn.part if name == "slow" else turn.all
                                spent = sides[name].run(turn, part)
                                pair[name].changed.append(sides[name].changed_inputs())
                                # All results at once: whoever computes them only now has to compute them all.
                                results, _ = sides[name].results(len(turn.all), spent)
                                pair[name].results.append(results)
                                pair[name].spent.append(spent)
                        self._compare(turns, pair["fast"], pair["slow"])
                        pairs.append({name: done.spent[1:] for name, done in pair.items()})
                finally:
                    ending = list(sides.values())
                    for side in ending:
                        side.kill()
                yield self._ratio(pairs[WARM_UPS:]) / self._threshold
        finally:
            for side in ending:
                side.await_end()

    def _inputs(self) -> tuple:
        return fresh_inputs(self._on, secrets.randbits(63), "cpu")

    def _turn(self, slow: int, fast: int) -> TurnInputs:
        inputs = [self._inputs() for _ in range(fast)]
        return TurnInputs(inputs, random.sample(range(fast), slow))

    def _compare(self, turns: Sequence[TurnInputs], fast: Done, slow: Done) -> None:
        """Raise AnswerError where the answer's results are not those of the given version."""
        if any(changed and not allowed for changed, allowed in zip(fast.changed, slow.changed, strict=True)):
            raise AnswerError("failed", "a call changed its input, which must be left alone.")
        for turn, got, expected in zip(turns, fast.results, slow.results, strict=True):
            if not isinstance(got, list) or len(got) != len(turn.all):
                raise AnswerError("failed", "not all results were there when the calls had ended.")
            for place, which in enumerate(turn.part):
                pair = got[which], expected[place]
                if not _identical(*pair) and (found := difference(*pair, None, self._tolerance)):
                    raise AnswerError("failed", f"a result was wrong while it was timed: {found}")

    def _ratio(self, pairs: Sequence[Mapping[str, list[Spent]]]) -> float:
        """The median over pairs of given / answer; keeps the seconds per call of both."""
        usual = median(turn.around for pair in pairs for turn in pair["slow"])
        more = median(turn.around for pair in pairs for turn in pair["fast"])
        more = max(0.0, more - SLACK_FACTOR * usual - SLACK_SECONDS)
        slow, fast = (
            [self._per_call(pair[name], which) for pair in pairs] for which, name in enumerate(SIDES)
        )
        fast = [
            seconds + more * len(self._turns) / sum(calls for _, calls in self._turns) for seconds in fast
        ]
        self.seconds["slow"] += slow
        self.seconds["fast"] += fast
        return math.exp(median(log_ratios(slow, fast)))

    def _per_call(self, turns: list[Spent], side: int) -> float:
        took = sum(turn.calls - self._idle for turn in turns)
        return max(took, 1e-9) / sum(calls[side] for calls in self._turns)


class TurnInputs:
    """The inputs of some calls, ready for both sides; ``part`` are the given version's calls."""

    def __init__(self, calls: list[tuple], part: list[int] | None = None) -> None:
        self._calls = calls  # the memory that is compared with what the sides have left of it
        self.inputs = Inputs()
        self.nodes: list[list[Value]] = [[self.inputs.node(value) for value in given] for given in calls]
        self.all = list(range(len(calls)))
        self.part = self.all if part is None else part


@dataclass
class Spent:
    """CPU seconds of a side for one turn: the calls, and the inputs and results around them."""

    calls: float
    around: float


@dataclass
class Done:
    """What a side did in a block, turn by turn: what it took, its results, whether it changed its inputs."""

    spent: list[Spent] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    changed: list[bool] = field(default_factory=list)


class Side:
    """One side of a race for one launch: ``copy`` waits for its process, in which ``function`` is called."""

    def __init__(
        self,
        name: str,
        function: str,
        process: AnswerProcess,
        copy: Callable[[], Connection],
        core: int | None,
        time_left: TimeLeft,
    ) -> None:
        self.name, self._function, self._process, self._time = name, function, process, time_left
        with _told(name):
            self._copy = copy()
        original = process.connection
        if original is None:
            raise DuelError(f"{name!r} ended its process.")
        if core is not None:
            os.sched_setaffinity(self._copy.pid, {core})
        self._shares_namespaces = original.first == self._copy.first
        self._own = {self._copy.first, self._copy.pid, original.pid}
        self._stopped = [pid for pid in linux.with_descendants(original.first) if pid != self._copy.pid]
        if self._copy.to_first is not None:
            self._stopped.remove(original.first)  # it is ours, and answers
        for pid in self._stopped:
            linux.send_signal(pid, signal.SIGSTOP)
        self._newest = self._copy.newest_process()
        self._inputs = Inputs()
        self._memory: SharedMemory | None = None

    def reserve(self, *turns: TurnInputs) -> None:
        """Have memory for the inputs of a turn, which the side has mapped."""
        size = max(turn.inputs.size for turn in turns)
        if self._memory is not None and self._memory.size >= size:
            return
        self._close_memory()
        self._memory = SharedMemory(2 * size)
        with self._running():
            prepare = PrepareRace(self._function)
            self._copy.channel.send(prepare, files=[self._memory.file], seconds=CALL_SECONDS)
            self._copy.reply(RaceReady, CALL_SECONDS)

    def run(self, turn: TurnInputs, part: list[int]) -> Spent:
        """Give it the inputs of all calls, and let it do ``part`` of them."""
        if self._memory is None:
            raise RuntimeError("no memory was reserved for these inputs")
        self._inputs = inputs = turn.inputs
        inputs.fill(self._memory)
        start = self._cpu_seconds()
        with self._running():
            self._copy.channel.send(RaceInputs(turn.nodes, inputs.places(), part), seconds=CALL_SECONDS)
            self._copy.channel.await_signal(CALL_SECONDS, self._copy.watch)
        ready = self._cpu_seconds()
        self._expect_nobody_else()
        waits = linux.voluntary_switches(self._copy.pid)
        wall = time.monotonic()
        with self._running():
            self._copy.channel.signal()
            seconds = min(CALL_SECONDS * max(1, len(part)), self._time.of_cell())
            self._copy.channel.await_signal(max(0.1, seconds), self._copy.watch)
        wall = time.monotonic() - wall
        took = self._cpu_seconds() - ready
        waits = linux.voluntary_switches(self._copy.pid) - waits
        if waits > FEW_WAITS or self._is_new():
            took = max(took, wall)  # it waited, or somebody else worked: then the time that passed counts
        return Spent(took, ready - start)

    def results(self, number: int, spent: Spent | None = None) -> tuple[Any, int]:
        """Its results, repeated until there are ``number``, and their bytes; what that took is added to
        ``spent``.
        """
        start = self._cpu_seconds()
        with self._running():
            self._copy.channel.send(FetchResults(number), seconds=CALL_SECONDS)
            reply, frame = self._copy.reply(Found | Raised, CALL_SECONDS)
        if spent is not None:
            spent.around += self._cpu_seconds() - start
        self._expect_nobody_else()
        if isinstance(reply, Raised):
            raise DuelError(f"{self.name!r} raised {reply.told}")
        try:
            values = decode.Reader(frame.payload, self._inputs.storages, _opaque).value(reply.value)
        except Malformed as error:
            self._process.suspicious.append(f"The answer's process sent {error}.")
            raise AnswerError("failed", f"a result cannot be read: {error}.") from None
        return values, len(frame.payload)

    def changed_inputs(self) -> bool:
        """Whether a call wrote into its inputs."""
        return self._memory is not None and self._inputs.changed(self._memory)

    def _is_new(self) -> bool:
        """Whether there was a new process or thread since the last look."""
        before, self._newest = self._newest, self._copy.newest_process()
        return self._newest != before

    def _expect_nobody_else(self) -> None:
        """Our code starts no process to take inputs or give results, and nobody else there runs."""
        if self._is_new() or any(linux.state(pid) not in "TtZX" for pid in self._stopped):
            self._process.suspicious.append(
                "In a race, another process of the answer worked beside the calls."
            )
            raise AnswerError("failed", "not timed, because another process worked beside the calls.")

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Let the side go on for the length of the block, and stop it again."""
        self._signal(signal.SIGCONT)
        try:
            yield
        except TooLate:
            raise DuelError(f"{self.name!r} did not return within {CALL_SECONDS:g} s a call.") from None
        except (Ended, Gone) as error:
            raise DuelError(f"{self.name!r} ended its process{f': {error}' if str(error) else ''}.") from None
        except Malformed as error:
            self._process.suspicious.append(f"The answer's process sent {error}.")
            raise DuelError(f"{self.name!r} sent {error}.") from None
        self._signal(signal.SIGSTOP)
        deadline = time.monotonic() + CALL_SECONDS
        while (state := linux.state(self._copy.pid)) not in "TZX":
            if time.monotonic() > deadline:
                raise DuelError(f"{self.name!r} could not be stopped.")
        if state != "T":
            raise DuelError(f"{self.name!r} ended its process.")

    def _signal(self, number: int) -> None:
        try:
            os.kill(self._copy.pid, number)
        except ProcessLookupError:
            raise DuelError(f"{self.name!r} ended its process.") from None

    def _cpu_seconds(self) -> float:
        """CPU seconds of all processes in its namespaces so far. The side itself is stopped."""
        total = 0.0
        for pid in linux.with_descendants(self._copy.first):
            if pid == self._copy.first and self._copy.to_first is not None:
                continue
            if pid not in self._own and linux.alive(pid):
                self._process.suspicious.append("In a race, the answer had another process running.")
                raise AnswerError(
                    "failed", "not timed, because your code keeps another process running beside the calls."
                )
            with suppress(OSError):
                total += linux.cpu_seconds(pid)
        return total

    def kill(self) -> None:
        """Have it ended, on any core, and let the others in its namespaces go on."""
        self._close_memory()
        with suppress(OSError):
            os.sched_setaffinity(self._copy.pid, range(os.cpu_count() or 1))
        self._copy.end()
        if not self._shares_namespaces:
            linux.kill(self._copy.first)
        for pid in self._stopped:
            linux.send_signal(pid, signal.SIGCONT)

    def await_end(self) -> None:
        """Wait until it is gone: giving back its memory takes as long as forking it."""
        self._copy.await_end()

    def _close_memory(self) -> None:
        if self._memory:
            self._memory.close()
            self._memory = None


def _split(calls: int, most: int) -> list[int]:
    """So many calls, in parts of at most ``most``, which are about equally large."""
    parts = math.ceil(calls / most)
    return [calls // parts + (part < calls % parts) for part in range(parts)]


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Say whose process could not be copied."""
    try:
        yield
    except (Ended, TooLate) as error:
        raise DuelError(f"{name!r} ended its process ({error}).") from None


def _identical(one: object, other: object) -> bool:
    """Whether two tensors agree to the last bit: most do, and then it is soon known."""
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return False
    alike = (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)
    return alike and one.device.type == "cpu" and torch.equal(one.detach(), other.detach())


def _opaque(node: ObjectNode) -> object:
    """What stands for a result that is no plain value."""
    return type(decode.class_name(node.type), (), {})()
