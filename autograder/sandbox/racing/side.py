"""A side of a race; and the side that grades: a copy of a process, whose clock is the kernel's.

``gpu.device_judge`` has the other kind of side, processes on a device.
"""

import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, NoReturn, Protocol, TypeAlias

from ...judging.calls import AnswerError
from ...judging.values import difference
from ...measuring.duel import DuelError
from ..answers.answer_handle import AnswerHandle, Connection, Ended
from ..answers.answer_link import TimeLeft
from ..walls import linux
from ..wire import decode
from ..wire.channel import Gone, Malformed, TooLate
from ..wire.encode import Inputs, SharedMemory
from ..wire.messages import Found, Hello, PrepareRace, RaceCall, RaceInputs, Raised, Value

CALL_SECONDS = 10.0
STOPPING_SECONDS = 1e-3  # that a process may take from where it counts as stopped; it is charged for them
WAITS, FEW_WAITS = 2, 3  # in each call a side waits to get ready, and for its inputs; and now and then
SPIN_SECONDS, ASLEEP_SECONDS = 1e-2, 1e-3  # that the judge waits for a side without giving up its own core
WAYS = 3  # calls of a block without their work
MOST_WAY = 0.7  # of what a call took; more is not taken off for the way to and from its process


class GivenInputs:
    """The inputs of one call, ready to be given to either side."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values  # the memory that is compared with what a side has left of it
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
    """Calls that were done: the results of all; CPU seconds of all but the first, and for getting ready.

    ``ways`` are what calls took without their work. ``changed``: a result was changed by a later call.
    """

    results: list[Result]
    ways: list[float]
    seconds: float = 0.0
    ready: float = 0.0
    changed: bool = False

    @property
    def way(self) -> float:
        """What as many calls as are timed took without their work."""
        return (len(self.results) - 1) * median(self.ways or [0.0])

    @property
    def work(self) -> float:
        """CPU seconds of the calls without the way to and from their process."""
        return without(self.seconds, self.way)


class Side(Protocol):
    """One side of a race for one launch; what its methods do, ``ForkedSide`` says."""

    name: str

    def reserve(self, block: Sequence[Any]) -> None: ...
    def run(self, block: Sequence[Any], keep: bool = False) -> Done: ...
    def refuse(self) -> NoReturn: ...
    def kill(self) -> None: ...
    def await_end(self) -> None: ...


# Starts a side, within the time that is left; gives what waits for it. Both raise DuelError, Ended, TooLate.
Start: TypeAlias = Callable[[Callable[[], float]], Callable[[], Side]]


class Restless(AnswerError):
    """A side took CPU time while it was stopped: it goes on by itself, or the machine was stopped just then.

    The launch does not count. More than a few in a race are no accident.
    """

    def __init__(self, side: Side) -> None:
        super().__init__("failed", "not timed, because a process went on while it was stopped.")
        self.side = side


def forked(
    processes: Mapping[str, tuple[str, AnswerHandle]], core: int | None, time_left: TimeLeft
) -> dict[str, Start]:
    """Both sides, forked from these processes, where these functions are called, on ``core`` (None: any)."""
    return {
        name: partial(process.start_copy, partial(ForkedSide, name, function, process, core, time_left))
        for name, (function, process) in processes.items()
    }


class ForkedSide:
    """A side that is forked: ``copy`` is the copy of a ``process``, in which ``function`` is called."""

    def __init__(
        self,
        name: str,
        function: str,
        process: AnswerHandle,
        core: int | None,
        time_left: TimeLeft,
        copy: Connection,
    ) -> None:
        self.name, self._function, self._process, self._time = name, function, process, time_left
        self._copy = copy
        self._call_seconds = min(CALL_SECONDS, time_left.cell.seconds)
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
        self._at_rest = {pid: linux.cpu_seconds(pid) for pid in self._stopped if pid not in self._own}
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
            self._copy.reply(Hello, seconds)
        try:
            self._memory = decode.ProcessMemory(self._copy.pid)
        except OSError:
            raise DuelError(f"the memory of {self.name!r} cannot be read.") from None

    def run(self, block: Sequence[GivenInputs], keep: bool = False) -> Done:
        """Have it do these calls, one after the other: it gets ready, its inputs come, and its result is read
        before anything else happens. The first call is not timed.

        ``keep``: each result stays until the last call was done, and not only until the next one.
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
                message = RaceInputs(given.tensors, places, kept)
                self._copy.channel.send(message, seconds=seconds)
                self._copy.channel.spin(SPIN_SECONDS)  # while it waits for us, others work on its core
                self._copy.reply(Hello, seconds)
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
        return Done(results, ways, took + beside, ready, keep and any(map(self._was_changed, results)))

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
        return linux.cpu_seconds(self._copy.pid)

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
            found[pid] = linux.cpu_seconds(pid)
        return found

    def _rests(self, pid: int) -> bool:
        """Whether a process was there before the launch, and has done nothing since but stop."""
        return pid in self._at_rest and linux.cpu_seconds(pid) - self._at_rest[pid] < STOPPING_SECONDS

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


def without(seconds: float, way: float) -> float:
    """What a call took without the way to and from its process."""
    return seconds - min(way, MOST_WAY * seconds)


def _more(before: Mapping[int, float], after: Mapping[int, float], but: int = 0) -> float:
    """CPU seconds that processes took between two looks at them, all ``but`` one."""
    new = (after[pid] - before.get(pid, 0.0) for pid in after if pid != but)
    return sum(max(0.0, seconds) for seconds in new)


@contextmanager
def told(name: str, late: str = "did not answer") -> Iterator[None]:
    """Say whose process failed; ``late`` is what to say of one that takes too long."""
    try:
        yield
    except TooLate:
        raise DuelError(f"{name!r} {late}.") from None
    except Malformed as error:
        raise DuelError(f"{name!r} sent {error}.") from None
    except (Ended, Gone) as error:
        raise DuelError(f"{name!r} ended its process{f': {error}' if str(error) else ''}.") from None
