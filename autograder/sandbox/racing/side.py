"""Sides of a race: processes that are copied, run blocks of calls, and whose clock is the kernel's."""

from __future__ import annotations

import itertools
import math
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from statistics import fmean, median
from typing import NoReturn

from ...judging.calls import AnswerError
from ...judging.values import difference
from ...measuring.clocks import BLOCK_SECONDS, READINGS, BlockSearch
from ...measuring.duel import DuelError
from ..answers.answer_handle import AnswerHandle, Connection, Ended
from ..answers.answer_link import TimeLeft
from ..walls import linux
from ..wire import decode
from ..wire.channel import Malformed, TooLate
from ..wire.encode import Inputs
from ..wire.messages import Found, PrepareRace, RaceCall, RaceInputs, RaceReady, Raised
from ..wire.shared_memory import SharedMemory
from .launches import Done, GivenInputs, Restless, Result, told
from .undisturbed import FEW, SIDES, Launch, Undisturbed

MOST_LAUNCHES = 120
COPY_SECONDS = 60.0  # for a copy of a process; one with threads runs all its cells again
MOST_CALLS = 50
MOST_INPUT_BYTES = MOST_OUTPUT_BYTES = 32 << 20
MOST_MAKING = 0.06  # seconds for the inputs of one block
# What a side may spend on getting ready for its inputs, as a multiple of what the other does, and beyond it.
MUCH, MUCH_SECONDS = 1.5, 2e-5
SHORT = 5e-3  # seconds: a call that is so short feels what its caches hold
CALL_SECONDS = 10.0
STOPPING_SECONDS = 1e-3  # that a process may take from where it counts as stopped; it is charged for them
WAITS, FEW_WAITS = 2, 3  # in each call a side waits to get ready, and for its inputs; and now and then
SPIN_SECONDS, ASLEEP_SECONDS = 1e-2, 1e-3  # that the judge waits for a side without giving up its own core
WAYS = 6  # calls of a block without their work
MOST_WAY = 0.7  # of what a call took; more is not taken off for the way to and from its process


class ForkedSide:
    """One side of a race for one launch: ``copy`` waits for its process, in which ``function`` is called.

    ``again``: before each call that is timed it does the last one once more, so that caches hold its code.
    """

    def __init__(
        self,
        name: str,
        function: str,
        process: AnswerHandle,
        copy: Callable[[], Connection],
        core: int | None,
        time_left: TimeLeft,
    ) -> None:
        self.name, self._function, self._process, self._time = name, function, process, time_left
        self._call_seconds = min(CALL_SECONDS, time_left.whole_cell)
        with copied(name):
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
        self.again = False
        self._inputs: SharedMemory | None = None
        self._memory: decode.ProcessMemory | None = None
        self._when_stopped: dict[int, float] = {}

    def prepare(self, inputs: Sequence[GivenInputs]) -> None:
        """Have memory for the inputs of each of these calls, which the side has mapped."""
        size = max(given.inputs.size for given in inputs)
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

    def run(self, block: Sequence[GivenInputs], warm_up: bool = False) -> Done:
        """Have it do these calls, one after the other: it gets ready, its inputs come, and its result is read
        before anything else happens. The first call is not timed.

        ``warm_up``: each result stays until the last call was done, and not only until the next one. After
        some of them comes a call that does all but the work.
        """
        assert self._inputs is not None  # prepare came first
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
                places, kept = given.inputs.places(), timed and (warm_up or not work)
                message = RaceInputs(given.tensors, places, kept, self.again and timed)
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
        per_call = (took + beside) / (len(results) - 1)
        return Done(results, ways, per_call, warm_up and any(map(self._was_changed, results)))

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
        assert self._memory is not None  # prepare came first
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

    def refuse(self) -> NoReturn:
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
        with told(self.name, self._call_seconds):
            try:
                yield
            except TooLate:
                if not self._at_rest:
                    raise
                self._process.suspicious.append(
                    "In a race, the answer did not return, and had other processes."
                )
                why = " Other processes of its own are stopped in a race: it must not wait for them."
                raise TooLate(why) from None
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


class ForkedSides:
    """Both sides of a race, on the core ``core`` (None: any): copies of the ``processes``.

    These have for each side the name of its function, and the process to copy. Closed, all copies are gone.
    """

    clock, most_launches, most_restless = "cpu", MOST_LAUNCHES, FEW

    def __init__(
        self,
        processes: Mapping[str, tuple[str, AnswerHandle]],
        threshold: float,
        time_left: TimeLeft,
        core: int | None,
    ) -> None:
        self._processes, self._threshold, self._time, self._core = processes, threshold, time_left, core
        self.calls: dict[str, int] = {}
        self._again = dict.fromkeys(SIDES, True)  # short calls follow one of the same kind
        self._undisturbed = Undisturbed(0.0)
        self._racing: list[ForkedSide] = []
        self._ending: list[ForkedSide] = []

    @property
    def thrown_away(self) -> int:
        """Launches that do not count, because something made a side slow."""
        return self._undisturbed.thrown_away

    def plan(self, inputs: GivenInputs, other: GivenInputs, making: float) -> None:
        """What ``_plan`` does, once more where the machine worked beside it."""
        try:
            self._plan(inputs, other, making)
        except Restless:
            self._plan(inputs, other, making)

    def _plan(self, inputs: GivenInputs, other: GivenInputs, making: float) -> None:
        """Find how many calls make a block, with a copy of the given version's process.

        ``BLOCK_SECONDS`` or more of the given version, and of an answer that is just fast enough; both within
        what inputs and results may take.
        """
        try:
            (slow,) = self._copies(["slow"])
            slow.again = False
            slow.prepare([inputs, other])
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
                slow.again = self._again["slow"]
                took.append(max(calls * _work(slow.run(block)), 1e-9))
                self._again["slow"] = took[-1] / calls < SHORT
                if not search.found:
                    search.take(took[-1])
                if search.calls != calls:
                    took.clear()
        finally:
            self.stop()
            self.close()
        seconds = median(took)
        self._undisturbed = Undisturbed(seconds / search.calls)
        enough = math.ceil(BLOCK_SECONDS * self._threshold * search.calls / seconds)
        self.calls = {"slow": search.calls, "fast": max(search.calls, min(most, enough))}

    def start(self, order: Sequence[str]) -> Sequence[ForkedSide]:
        """Copy both processes; none where no time is left. Raises DuelError."""
        if not self._time.of_cell():
            return []
        start = time.monotonic()
        sides = self._copies(order)
        self._time.put_off_cell(time.monotonic() - start)  # some copies run all cells again
        return sides

    def _copies(self, order: Sequence[str]) -> list[ForkedSide]:
        # Both at once, while the last ones end: that takes longer than all that is timed.
        copies = []
        for name in order:
            with copied(name):
                left = self._time.of_step(COPY_SECONDS)
                copies.append((name, self._processes[name][1].start_copy(left)))
        self.close()
        for name, copy in copies:
            self._racing.append(ForkedSide(name, *self._processes[name], copy, self._core, self._time))
            self._racing[-1].again = self._again[name]
        return self._racing

    def warmed_up(self, done: Mapping[str, Done]) -> Mapping[str, int]:
        """Calls for the blocks of a launch: a slow answer needs no more than the given version."""
        first = done["fast"]
        self._again["fast"] = _work(first) < SHORT
        for side in self._racing:
            side.again = self._again[side.name]
        least = min(result.seconds for result in first.results[1:]) * _work(first) / first.seconds
        enough = math.ceil(1.25 * BLOCK_SECONDS / max(least, 1e-9))
        return self.calls | {"fast": max(self.calls["slow"], min(enough, self.calls["fast"]))}

    def per_call(self, done: Mapping[str, Done]) -> dict[str, float]:
        """Seconds per call of each side, without the way to and from its process.

        The answer could make its calls without work as long as it likes: no more counts than for the other.
        """
        ways = {name: median(done[name].ways) for name in SIDES}
        taken_off = {"slow": ways["slow"], "fast": min(ways.values())}
        per_call = {name: _without(done[name].seconds, taken_off[name]) for name in SIDES}
        # There is nothing to do but that: the values of its inputs are not there while it gets ready, and
        # its result is there when it does no work.
        once_more = {name: per_call[name] if self._again[name] else 0.0 for name in SIDES}
        ready = {
            name: max(0.0, fmean(result.ready for result in done[name].results[1:]) - once_more[name])
            for name in SIDES
        }
        for took in (ready, ways):
            per_call["fast"] += max(0.0, took["fast"] - MUCH * took["slow"] - MUCH_SECONDS)
        return {name: max(seconds, 1e-9) for name, seconds in per_call.items()}

    def stop(self) -> None:
        """Have the copies ended; ``close`` waits until they are."""
        for side in self._racing:
            side.kill()
        self._ending, self._racing = self._racing, []

    def close(self) -> None:
        """Wait until all copies are gone."""
        for side in self._ending:
            side.await_end()
        self._ending = []

    def counting(self, launches: Iterable[Launch]) -> Iterator[Launch]:
        """Those launches that count. Raises TooNoisy."""
        for launch in launches:
            yield from self._undisturbed.take(launch)
        yield from self._undisturbed.rest()


def _work(done: Done) -> float:
    """CPU seconds per call without the way to and from its process."""
    return _without(done.seconds, median(done.ways))


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
def copied(name: str) -> Iterator[None]:
    """Say whose process could not be copied."""
    try:
        yield
    except (Ended, TooLate) as error:
        raise DuelError(f"{name!r} ended its process ({error}).") from None
