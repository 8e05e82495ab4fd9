"""A race between two processes, neither of which is believed: the code that decides the points for speed.

Both sides are copies of processes that were forked from the same one, pinned to the same core, and stopped
while the other runs. The same code in two processes can differ by tens of per cent, for as long as they live,
so the unit of evidence is the *launch*: copy both sides in random order, warm up, time a few pairs of blocks,
keep one ratio. The judge makes all inputs, a different one for each call. It gives the values of one input at
a time, and reads the result where it lies, in the side's memory; and from the one to the other it counts the
CPU time of everything that lives in the side's namespaces. So nothing is gained by computing several calls at
once, early or late.
"""

from __future__ import annotations

import itertools
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

from ..judging.calls import AnswerError, describe_error
from ..judging.values import difference
from ..measuring.clocks import BLOCK_SECONDS, READINGS, BlockSearch
from ..measuring.decide import count_alike, decide
from ..measuring.duel import DuelError, Verdict, check_threshold, fresh_inputs, log_ratios, ratio_of_logs
from . import decode, linux
from .answer_link import AnswerLink, TimeLeft
from .answer_process import AnswerProcess, Connection, Ended
from .channel import Gone, Malformed, TooLate
from .encode import Inputs
from .messages import (
    Found,
    PrepareRace,
    RaceCall,
    RaceInputs,
    RaceReady,
    Raised,
    Target,
    Value,
)
from .proxies import Proxy
from .shared_memory import SharedMemory
from .undisturbed import FEW, SIDES, Launch, Undisturbed

# A wrong verdict of each kind has a probability of at most 1 in 1,000, and a race that noise left undecided
# is judged a second time: so the two share it. The first's share still decides after eleven equal signs.
ERRORS = {"now": 8.4e-4, "again": 1.6e-4}

PAIRS = 3  # at most, of a launch
FIRST_CALLS = 8  # at most, of a launch: they warm up, and their results are looked at again
MOST_LAUNCHES = 120
CALL_SECONDS = 10.0
STOPPING_SECONDS = 1e-3  # that a process may take from where it counts as stopped; it is charged for them
COPY_SECONDS = 60.0  # for a copy of a process; one with threads runs all its cells again
MOST_CALLS = 50
MOST_INPUT_BYTES = MOST_OUTPUT_BYTES = 32 << 20
MOST_MAKING = 0.06  # seconds for the inputs of one block
WAITS, FEW_WAITS = 2, 3  # in each call a side waits to get ready, and for its inputs; and now and then
# What a side may spend on getting ready for its inputs, as a multiple of what the other does, and beyond it.
MUCH, MUCH_SECONDS = 1.5, 2e-5
SHORT = 5e-3  # seconds: a call that is so short feels what its caches hold
SPIN_SECONDS, ASLEEP_SECONDS = 1e-2, 1e-3  # that the judge waits for a side without giving up its own core
WAYS = 6  # calls of a block without their work
MOST_WAY = 0.7  # of what a call took; more is not taken off for the way to and from its process

# Not what given cells may seed: nobody is to know who comes first.
_DRAWN = random.SystemRandom()


@dataclass
class Turn:
    """These cores are ours for one race; ``logs`` are the log-ratios of its launches."""

    cores: list[int]
    strays_are_rare: bool
    logs: list[float] = field(default_factory=list)


class TimedRace:
    """Races of one submission. ``names`` are those of the judge's notebook.

    ``given`` gives the process that ran the given cells only; ``timing`` has cores; ``error``
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
        with self._timing() as turn, linux.first_kept_free(turn.cores) as core:
            for name, side in processes.items():
                with _told(name):
                    side[1].use(self._time.of_cell)
            shares = target.name in self._answer.shares  # when it was checked
            self._call_once(given, on)
            launches = Launches(processes, on, threshold, tolerance, self._time, core, shares)
            launches.plan()
            decision = decide(launches.ratios(), self._error, strays_are_rare=turn.strays_are_rare)
            turn.logs = [math.log(ratio * threshold) for ratio in decision.ratios]
        if not turn.logs:
            raise DuelError("there was no time left for this race.")
        ratio = ratio_of_logs(turn.logs)
        return Verdict(
            decision.word,
            ratio,
            threshold,
            launches.seconds,
            "cpu",
            turn.logs,
            launches.thrown_away,
            signs_only=not turn.strays_are_rare,
        )

    def _call_once(self, given: str, on: Callable[..., object]) -> None:
        """Call the given version in the process that is copied, as the answer was when it was checked: what a
        first call leaves behind (code that a library compiled, free memory) is then in the copies of both.
        """
        call = Proxy(AnswerLink(self._given(), self._time, [], []), self.duel, Target(given))
        try:
            call(*fresh_inputs(on, secrets.randbits(63), "cpu"))
        except Exception as error:
            raise DuelError(f"'slow' raised {describe_error(error)}") from None


class Launches:
    """Launches of both sides, one after the other; ``seconds`` per call of each side, a figure a pair.

    ``processes`` has for each side the name of its function, and the process to copy. On the core ``core``
    (None: any). ``shares``: an answer's result may share memory with its input.
    """

    def __init__(
        self,
        processes: Mapping[str, tuple[str, AnswerProcess]],
        on: Callable[..., object],
        threshold: float,
        tolerance: float | None,
        time_left: TimeLeft,
        core: int | None,
        shares: bool = False,
    ) -> None:
        self._shares = shares
        self._processes, self._on, self._threshold, self._tolerance = processes, on, threshold, tolerance
        self._time, self._core = time_left, core
        self._calls: dict[str, int] = {}
        self._again = dict.fromkeys(SIDES, True)  # short calls follow one of the same kind
        self._restless = 0  # launches
        self._undisturbed = Undisturbed(0.0)
        self.seconds: dict[str, list[float]] = {name: [] for name in SIDES}

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
        first, second = self._inputs(), self._inputs()
        making = (time.process_time() - start) / 2
        if difference(first, second) is None:
            raise ValueError("`on` makes the same inputs each time: an answer could keep its results.")
        with _told("slow"):
            copy = self._processes["slow"][1].start_copy(self._time.of_step(COPY_SECONDS))
        slow = self._side("slow", copy)
        try:
            inputs, other = GivenInputs(second), GivenInputs(first)
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
                took.append(max(slow.run(block, again=self._again["slow"]).work, 1e-9))
                self._again["slow"] = took[-1] / calls < SHORT
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

    def ratios(self) -> Iterator[float]:
        """For each launch how many times as fast the answer is, over the threshold. After ``plan``."""
        ending: list[Side] = []
        try:
            for _ in range(MOST_LAUNCHES):
                if not self._time.of_cell():
                    break
                sides: list[Side] = []
                pairs: list[dict[str, float]] = []
                start = time.monotonic()
                try:
                    # Both at once, while the last ones end: that takes longer than all that is timed.
                    copies = []
                    for name in _DRAWN.sample(SIDES, 2):
                        with _told(name):
                            left = self._time.of_step(COPY_SECONDS)
                            copies.append((name, self._processes[name][1].start_copy(left)))
                    for side in ending:
                        side.await_end()
                    for name, copy in copies:
                        sides.append(self._side(name, copy))
                    self._time.put_off_cell(time.monotonic() - start)  # some copies run all cells again
                    calls = {name: min(self._calls[name], FIRST_CALLS) for name in SIDES}
                    before = GivenInputs(self._inputs())
                    for warm_up in (True,) + (False,) * PAIRS:
                        new = range(1, 1 + calls["fast"])
                        # What is not timed may be known.
                        inputs = [before, *(GivenInputs(self._inputs()) for _ in new)]
                        before = inputs[-1]
                        part = [0, *_DRAWN.sample(new, calls["slow"])]
                        done: dict[str, Done] = {}
                        for side in _DRAWN.sample(sides, 2):
                            side.reserve(inputs)
                            block = inputs if side.name == "fast" else [inputs[which] for which in part]
                            done[side.name] = side.run(block, warm_up, self._again[side.name])
                        self._compare(done["fast"], done["slow"], part)
                        if warm_up:
                            self._again["fast"] = done["fast"].work / calls["fast"] < SHORT
                            calls = self._calls | {"fast": self._enough(done["fast"])}
                            continue
                        pairs.append(self._per_call(done, calls))
                        if len(pairs) == 2 and self._settled(pairs):
                            break  # a third could not change what the median of three says
                except Restless as found:
                    self._restless += 1
                    if self._restless > FEW:
                        found.side.refuse()
                    continue
                finally:
                    ending = sides
                    for side in ending:
                        side.kill()
                yield from map(self._ratio, self._undisturbed.take(pairs))
            yield from map(self._ratio, self._undisturbed.rest())
        finally:
            for side in ending:
                side.await_end()

    @property
    def thrown_away(self) -> int:
        """Launches that do not count, because something made a side slow, or a side did not rest."""
        return self._undisturbed.thrown_away + self._restless

    def _side(self, name: str, copy: Callable[[], Connection]) -> Side:
        return Side(name, *self._processes[name], copy, self._core, self._time)

    def _inputs(self) -> tuple:
        return fresh_inputs(self._on, secrets.randbits(63), "cpu")

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

    def _enough(self, first: Done) -> int:
        """Calls for a block of an answer, after its ``first``: a slow one needs no more than the given."""
        least = min(result.seconds for result in first.results[1:]) * first.work / first.seconds
        enough = math.ceil(1.25 * BLOCK_SECONDS / max(least, 1e-9))
        return max(self._calls["slow"], min(enough, self._calls["fast"]))

    def _per_call(self, done: Mapping[str, Done], calls: Mapping[str, int]) -> dict[str, float]:
        """Seconds per call of each side, without the way to and from its process.

        The answer could make its calls without work as long as it likes: no more counts than for the other.
        """
        ways = {name: done[name].way / calls[name] for name in SIDES}
        taken_off = {"slow": ways["slow"], "fast": min(ways.values())}
        per_call = {name: _without(done[name].seconds / calls[name], taken_off[name]) for name in SIDES}
        # There is nothing to do but that: the values of its inputs are not there while it gets ready, and
        # its result is there when it does no work.
        once_more = {name: per_call[name] if self._again[name] else 0.0 for name in SIDES}
        ready = {name: max(0.0, done[name].ready / calls[name] - once_more[name]) for name in SIDES}
        for took in (ready, ways):
            per_call["fast"] += max(0.0, took["fast"] - MUCH * took["slow"] - MUCH_SECONDS)
        return {name: max(seconds, 1e-9) for name, seconds in per_call.items()}

    def _settled(self, pairs: Sequence[Mapping[str, float]]) -> bool:
        one, other = (pair["slow"] / pair["fast"] / self._threshold for pair in pairs)
        return count_alike(one, other)

    def _ratio(self, launch: Launch) -> float:
        """The median over pairs of given / answer, over the threshold; keeps the seconds per call of both."""
        taken = {name: [pair[name] for pair in launch] for name in SIDES}
        for name in SIDES:
            self.seconds[name] += taken[name]
        return math.exp(median(log_ratios(taken["slow"], taken["fast"]))) / self._threshold


class GivenInputs:
    """The inputs of one call, ready to be given to either side."""

    def __init__(self, values: tuple) -> None:
        self._values = values  # the memory that is compared with what a side has left of it
        self.tensors: list[Value] = []
        self.inputs = Inputs(ready=self.tensors)
        self.nodes = [self.inputs.node(value) for value in values]


@dataclass
class Result:
    """One call: its result as it came and as it was read, its bytes, and what it did to its inputs.

    ``seconds`` of CPU time from when the inputs were there until the result was read, the same for getting
    ready, and of wall time.
    """

    node: Value
    value: Any
    bytes: int
    shares_input: bool
    changed_input: bool = False
    seconds: float = 0.0
    ready: float = 0.0
    wall: float = 0.0


@dataclass
class Done:
    """Calls that were done: CPU seconds of all but the first, and for getting ready; the results of all.

    ``way`` is what as many calls took without their work. ``changed``: a result was changed by a later call.
    """

    seconds: float
    way: float
    ready: float
    results: list[Result]
    changed: bool

    @property
    def work(self) -> float:
        """CPU seconds of the calls without the way to and from their process."""
        return _without(self.seconds, self.way)


class Restless(AnswerError):
    """A side took CPU time while it was stopped: it goes on by itself, or the machine was stopped just then.

    The launch does not count. More than ``FEW`` in a race are no accident.
    """

    def __init__(self, side: Side) -> None:
        super().__init__("failed", "not timed, because a process went on while it was stopped.")
        self.side = side


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
        self._call_seconds = min(CALL_SECONDS, time_left.whole_cell)
        with _told(name):
            self._copy = copy()
        original = process.connection
        if original is None:
            raise DuelError(f"{name!r} ended its process.")
        if core is not None:
            os.sched_setaffinity(self._copy.pid, {core})
        self._shares_namespaces = original.first == self._copy.first
        self._own = {self._copy.first, self._copy.pid, original.pid}
        others = {*linux.with_descendants(original.first), *linux.with_descendants(self._copy.first)}
        others.discard(self._copy.pid)
        if self._copy.to_first is not None:
            others -= {original.first, self._copy.first}  # they are ours, and answer
        self._stopped = sorted(others)
        for pid in self._stopped:
            linux.send_signal(pid, signal.SIGSTOP)
        left = time_left.of_step(self._call_seconds)
        while not self._others_are_stopped() and left():
            pass
        # Processes that were there before, and do nothing, cost nothing.
        self._at_rest = {pid: _cpu_seconds_of(pid) for pid in self._stopped if pid not in self._own}
        self._newest = self._copy.newest_process()
        self._inputs: SharedMemory | None = None
        self._memory: decode.ProcessMemory | None = None
        self._when_stopped: dict[int, float] = {}

    def reserve(self, block: Sequence[GivenInputs]) -> None:
        """Have memory for the inputs of each of these calls, which the side has mapped."""
        size = max(given.inputs.size for given in block)
        if self._inputs is not None and self._inputs.size >= size:
            return
        self._close()
        self._inputs = SharedMemory(2 * size)
        with self._running():
            prepare = PrepareRace(self._function)
            seconds = self._time.of_step(self._call_seconds)
            self._copy.channel.send(prepare, files=[self._inputs.file], seconds=seconds)
            self._copy.reply(RaceReady, seconds)
        try:
            self._memory = decode.ProcessMemory(self._copy.pid)
        except OSError:
            raise DuelError(f"the memory of {self.name!r} cannot be read.") from None

    def run(self, block: Sequence[GivenInputs], keep: bool = False, again: bool = False) -> Done:
        """Have it do these calls, one after the other: it gets ready, its inputs come, and its result is read
        before anything else happens. The first call is not timed.

        ``keep``: each result stays until the last call was done, and not only until the next one. ``again``:
        before each call that is timed it does the last one once more, so that the caches hold its code.
        After some of them comes a call that does all but the work.
        """
        assert self._inputs is not None  # reserve came first
        results: list[Result] = []
        ways: list[float] = []
        every = math.ceil((len(block) - 1) / WAYS)
        calls = [
            (given, work)
            for number, given in enumerate(block)
            for work in ((True, False) if number and number % every == 0 else (True,))
        ]
        with self._running():
            waits = linux.voluntary_switches(self._copy.pid)
            for number, (given, work) in enumerate(calls):
                timed = number > 0
                seconds, start = self._time.of_step(self._call_seconds), self._own_seconds()
                places, kept = given.inputs.places(), timed and (keep or not work)
                message = RaceInputs(given.tensors, places, kept, again and timed)
                self._copy.channel.send(message, seconds=seconds)
                self._copy.channel.spin(SPIN_SECONDS)  # while it waits for us, others work on its core
                self._copy.reply(RaceReady, seconds)
                began, wall = self._own_seconds_asleep(start), time.monotonic()
                given.inputs.fill(self._inputs)
                self._copy.channel.send(RaceCall(given.nodes, work), seconds=seconds)
                result = self._result(given.inputs, seconds)
                result.wall, result.seconds = time.monotonic() - wall, self._own_seconds() - began
                result.ready = began - start
                if not work:
                    ways.append(result.seconds)
                    continue
                result.changed_input = given.inputs.changed(self._inputs)
                results.append(result)
                if not timed:
                    if not self._others_are_stopped():
                        self.refuse()
                    self._is_new()  # what began in the first call is not looked at
                    before = self._of_all()
            beside = _more(before, self._of_all(), but=self._copy.pid)
            waits = linux.voluntary_switches(self._copy.pid) - waits
        took, wall = sum(result.seconds for result in results[1:]), sum(result.wall for result in results[1:])
        if waits > WAITS * (len(results) + len(ways)) + FEW_WAITS or self._is_new():
            took = max(took, wall)  # it waited, or somebody else worked: then the time that passed counts
        ready = sum(result.ready for result in results[1:])
        return Done(
            took + beside,
            (len(results) - 1) * median(ways or [0.0]),
            ready,
            results,
            keep and any(map(self._was_changed, results)),
        )

    def _own_seconds_asleep(self, before: float) -> float:
        """Its CPU seconds when it has gone to sleep: the kernel counts what it took since ``before`` then."""
        end = time.monotonic() + ASLEEP_SECONDS
        while (now := self._own_seconds()) <= before and time.monotonic() < end:
            pass
        return now

    def _was_changed(self, result: Result) -> bool:
        """Whether a result is no longer what it was."""
        if result.shares_input:
            return False  # the next input came there
        assert self._memory is not None
        try:
            now = decode.Reader(self._memory, [], decode.opaque).value(result.node)
        except Malformed:
            return True
        return difference(now, result.value) is not None

    def _result(self, inputs: Inputs, seconds: Callable[[], float]) -> Result:
        """The result of a call, read where it lies."""
        assert self._memory is not None  # reserve came first
        reply, _ = self._copy.reply(Found | Raised, seconds)
        if isinstance(reply, Raised):
            raise DuelError(f"{self.name!r} raised {reply.told}")
        reader = decode.Reader(self._memory, inputs.storages, decode.opaque)
        try:
            value = reader.value(reply.value)
        except Malformed as error:
            self._process.suspicious.append(f"The answer's process sent {error}.")
            raise AnswerError("failed", f"a result cannot be read: {error}.") from None
        return Result(reply.value, value, reader.bytes, bool(reader.aliases))

    def _is_new(self) -> bool:
        """Whether there was a new process or thread since the last look."""
        before, self._newest = self._newest, self._copy.newest_process()
        return self._newest != before

    def refuse(self) -> None:
        """Raise AnswerError, and have somebody look at it."""
        self._process.suspicious.append("In a race, another process of the answer worked beside the calls.")
        raise AnswerError("failed", "not timed, because another process worked beside the calls.")

    def _others_are_stopped(self) -> bool:
        """Whether nobody else runs who was there before the launch."""
        return all(linux.state(pid) in "TtZX" for pid in self._stopped)

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Let the side go on for the length of the block, and stop it again, with all its threads."""
        if self._when_stopped and _more(self._when_stopped, self._of_all()) > STOPPING_SECONDS:
            raise Restless(self)
        self._signal(signal.SIGCONT)
        try:
            yield
        except TooLate:
            why = f"{self.name!r} did not return within {self._call_seconds:g} s a call."
            if self._at_rest:
                self._process.suspicious.append(
                    "In a race, the answer did not return, and had other processes."
                )
                why += " Other processes of its own are stopped in a race: it must not wait for them."
            raise DuelError(why) from None
        except (Ended, Gone) as error:
            raise DuelError(f"{self.name!r} ended its process{f': {error}' if str(error) else ''}.") from None
        except Malformed as error:
            self._process.suspicious.append(f"The answer's process sent {error}.")
            raise DuelError(f"{self.name!r} sent {error}.") from None
        self._signal(signal.SIGSTOP)
        left = self._time.of_step(self._call_seconds)
        while set(states := linux.states(self._copy.pid)) - set("TZX"):
            if not left():
                raise DuelError(f"{self.name!r} could not be stopped.")
        if "T" not in states:
            raise DuelError(f"{self.name!r} ended its process.")
        self._when_stopped = self._of_all()

    def _signal(self, number: int) -> None:
        try:
            os.kill(self._copy.pid, number)
        except ProcessLookupError:
            raise DuelError(f"{self.name!r} ended its process.") from None

    def _own_seconds(self) -> float:
        """CPU seconds of the process that does the calls so far. It is stopped, or waits."""
        return _cpu_seconds_of(self._copy.pid)

    def _of_all(self) -> dict[int, float]:
        """CPU seconds so far of each process in its namespaces. Refuses the race where one should not be."""
        found: dict[int, float] = {}
        for pid in linux.with_descendants(self._copy.first):
            if pid == self._copy.first and self._copy.to_first is not None:
                continue
            if pid not in self._own and linux.alive(pid) and not self._rests(pid):
                self._process.suspicious.append("In a race, the answer had another process running.")
                raise AnswerError(
                    "failed", "not timed, because your code keeps another process running beside the calls."
                )
            found[pid] = _cpu_seconds_of(pid)
        return found

    def _rests(self, pid: int) -> bool:
        """Whether a process was there before the launch, and has done nothing since but stop."""
        return pid in self._at_rest and _cpu_seconds_of(pid) - self._at_rest[pid] < STOPPING_SECONDS

    def kill(self) -> None:
        """Have it ended, on any core, and let the others in its namespaces go on."""
        self._close()
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

    def _close(self) -> None:
        if self._inputs is not None:
            self._inputs.close()
        if self._memory is not None:
            self._memory.close()
        self._inputs = self._memory = None


def _without(seconds: float, way: float) -> float:
    """What a call took without the way to and from its process."""
    return seconds - min(way, MOST_WAY * seconds)


def _cpu_seconds_of(pid: int) -> float:
    """CPU seconds of a process so far; 0 when it is gone."""
    with suppress(OSError):
        return linux.cpu_seconds(pid)
    return 0.0


def _more(before: Mapping[int, float], after: Mapping[int, float], but: int = 0) -> float:
    """CPU seconds that processes took between two looks at them, all ``but`` one."""
    new = (after[pid] - before.get(pid, 0.0) for pid in after if pid != but)
    return sum(max(0.0, seconds) for seconds in new)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Say whose process could not be copied."""
    try:
        yield
    except (Ended, TooLate) as error:
        raise DuelError(f"{name!r} ended its process ({error}).") from None
