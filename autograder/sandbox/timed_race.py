"""A race between two processes, neither of which is believed.

Both sides are copies of processes that were forked from the same warm one, pinned to the same core, and
stopped whenever it is not their turn. The judge makes all inputs, a different one for each call, and reads
the kernel's CPU clocks of everything that lives in the side's room. Both sides take the inputs of all calls
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

import torch

from ..judging.calls import AnswerError
from ..judging.values import difference
from ..measuring.clocks import BLOCK_SECONDS
from ..measuring.decide import SignTest
from ..measuring.duel import DuelError, Verdict, arguments, log_ratios, ratio_of_logs
from ..measuring.launches import CALL_SECONDS, MOST_LAUNCHES, PAIRS, WARM_UPS, apart
from . import linux
from .answer_link import Ended, Template, Worker, alive, kill, send
from .channel import Gone, Malformed, Message, TooLate
from .proxies import error_of
from .wire import Arena, Inputs, Reader

if TYPE_CHECKING:
    from .judge import Judge

ERROR = 1e-3
MOST_CALLS = 200
MOST_INPUT_BYTES = 32 << 20
MOST_OUTPUT_BYTES = 32 << 20
MOST_MAKING = 0.06  # seconds for the inputs of one block
FEW_WAITS = 3  # a side that only computes waits for the word to start, for its turn, and after the end
# What a side may spend on inputs and results beyond what the other side needs for as many.
SLACK_FACTOR, SLACK_SECONDS = 1.2, 30e-6


@dataclass
class Block:
    """CPU seconds of the side's room for one block: the calls, and the inputs and results around them."""

    calls: float
    around: float


@dataclass
class Plan:
    """How many calls make a block: fewer for the given version, on a part of the answer's inputs."""

    given: int
    answer: int


class Calls:
    """The inputs of some calls, made ready for both sides."""

    def __init__(self, calls: list[tuple] = ()) -> None:
        self.calls = calls  # the memory that is compared with what the sides have left of it
        self.inputs = Inputs()
        self.nodes = [[self.inputs.node(value) for value in given] for given in calls]


class Side:
    """One side of a race for one launch."""

    def __init__(
        self,
        name: str,
        function: str,
        template: Template,
        copy: Callable[[], Worker],
        core: int | None,
        left: Callable[[], float],
    ) -> None:
        self.name, self.template, self._left = name, template, left
        with _told(name):
            self.worker = copy()
        if core is not None:
            os.sched_setaffinity(self.worker.pid, {core})
        self._own = {self.worker.room, self.worker.pid, template.process.pid}
        self._still = [pid for pid in linux.family(template.process.room) if pid != self.worker.pid]
        if self.worker.warden is not None:
            self._still.remove(template.process.room)  # it is ours, and answers
        for pid in self._still:
            send(pid, signal.SIGSTOP)
        self._function = function
        self._inputs = Inputs()
        self._arena: Arena | None = None

    def run(self, calls: Calls, part: list[int]) -> Block:
        """Give it the inputs of all calls, and let it do ``part`` of them."""
        self._inputs = inputs = calls.inputs
        if self._arena is None or self._arena.size < inputs.size:
            self.close_arena()
            self._arena = Arena(2 * inputs.size)
            course = {"op": "course", "name": self._function}
            self._turn(lambda: self.worker.ask(course, files=[self._arena.file], seconds=CALL_SECONDS))
        inputs.fill(self._arena)
        order = {"op": "inputs", "calls": calls.nodes, "places": inputs.places(), "part": part}
        newest, start = self.worker.last_pid(), self._spent()
        self._turn(lambda: self._give(order))
        ready = self._spent()
        self._expect_nobody_else(newest)
        waits = self._waits()
        wall = time.perf_counter()
        self._turn(lambda: self._go(CALL_SECONDS * max(1, len(part))))
        wall = time.perf_counter() - wall
        took = self._spent() - ready
        if self._waits() - waits > FEW_WAITS or self.worker.last_pid() != newest:
            took = max(took, wall)  # it waited, or somebody else worked: then the time that passed counts
        return Block(took, ready - start)

    def results(self, number: int, block: Block) -> tuple[Message, Reader]:
        """Its results, repeated until there are ``number``; the block takes note of what that took."""
        newest, start = self.worker.last_pid(), self._spent()
        order = {"op": "fetch", "number": number}
        reply = self._turn(lambda: self.worker.ask(order, seconds=CALL_SECONDS))
        block.around += self._spent() - start
        self._expect_nobody_else(newest)
        if "error" in reply.fields:
            raise DuelError(f"{self.name!r} raised {error_of(reply.fields['error']).told}")
        return reply, Reader(reply.payload, self._inputs, opaque)

    def changed_inputs(self) -> bool:
        """Whether a call wrote into its inputs."""
        return self._inputs.changed(self._arena)

    def _expect_nobody_else(self, newest: int) -> None:
        """Our code starts no process to take inputs or give results, and nobody else in the room runs."""
        awake = any(linux.state(pid) not in "TtZX" for pid in self._still)
        if awake or self.worker.last_pid() != newest:
            self.template.suspicious.append(
                "In a race, another process of the answer worked beside the calls."
            )
            raise AnswerError("failed", "not timed, because another process worked beside the calls.")

    def _give(self, order: dict) -> None:
        self.worker.channel.send(order, seconds=CALL_SECONDS)
        self.worker.channel.await_signal(CALL_SECONDS, self.worker.watch)

    def _go(self, seconds: float) -> None:
        """Let it do the calls, for which it has everything."""
        self.worker.channel.signal()
        self.worker.channel.await_signal(max(0.1, min(seconds, self._left())), self.worker.watch)

    def _turn(self, deed: Callable) -> object:
        """Let the side go on until ``deed`` is done, and stop it again."""
        self._signal(signal.SIGCONT)
        try:
            result = deed()
        except TooLate:
            raise DuelError(f"{self.name!r} did not return within {CALL_SECONDS:g} s a call.") from None
        except (Ended, Gone) as error:
            raise DuelError(f"{self.name!r} ended its process{f': {error}' if str(error) else ''}.") from None
        except Malformed as error:
            self.template.suspicious.append(f"The answer's process sent {error}.")
            raise DuelError(f"{self.name!r} sent {error}.") from None
        self._signal(signal.SIGSTOP)
        deadline = time.monotonic() + CALL_SECONDS
        while (state := linux.state(self.worker.pid)) not in "TZX":
            if time.monotonic() > deadline:
                raise DuelError(f"{self.name!r} could not be stopped.")
        if state != "T":
            raise DuelError(f"{self.name!r} ended its process.")
        return result

    def _signal(self, number: int) -> None:
        try:
            os.kill(self.worker.pid, number)
        except ProcessLookupError:
            raise DuelError(f"{self.name!r} ended its process.") from None

    def _waits(self) -> int:
        return int(linux.status(self.worker.pid).get("voluntary_ctxt_switches", "0"))

    def _spent(self) -> float:
        """CPU seconds of all processes in the room so far. The side itself is stopped."""
        total = 0.0
        for pid in linux.family(self.worker.room):
            if pid == self.worker.room and self.worker.warden is not None:
                continue
            if pid not in self._own and alive(pid):
                self.template.suspicious.append("In a race, the answer had another process running.")
                raise AnswerError(
                    "failed", "not timed, because your code keeps another process running beside the calls."
                )
            with suppress(OSError):
                total += time.clock_gettime(~pid << 3 | 2)
        return total

    def kill(self) -> None:
        """Have it ended, on any core: giving back its memory takes as long as forking it."""
        self.close_arena()
        with suppress(OSError):
            os.sched_setaffinity(self.worker.pid, range(os.cpu_count()))
        self.worker.end()

    def close_arena(self) -> None:
        if self._arena:
            self._arena.close()

    def end(self) -> None:
        """Wait until it is gone, and let the others in its room go on."""
        self.worker.await_end()
        process = self.template.process
        if process is None or process.room != self.worker.room:
            kill(self.worker.room)
        for pid in self._still:
            send(pid, signal.SIGCONT)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Say whose process could not be copied."""
    try:
        yield
    except (Ended, TooLate) as error:
        raise DuelError(f"{name!r} ended its process ({error}).") from None


def _identical(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors agree to the last bit: most do, and then it is soon known."""
    alike = (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)
    return alike and one.device.type == "cpu" and torch.equal(one.detach(), other.detach())


def opaque(node: dict) -> object:
    """What stands for a result that is no plain value."""
    return type(str(node.get("type", "object"))[:80], (), {})()


def duel(
    judge: Judge, answer: str, against: Callable, on: Callable, threshold: float, tolerance: float | None
) -> Verdict:
    """Whether the answer is ``threshold`` times as fast as ``against``; a sequential test over launches.

    As ``measuring.launches.duel_in_launches``, with sides that are not trusted. Raises DuelError where a side
    cannot be timed, AnswerError where a result is wrong or the rules are broken.
    """
    given = next((name for name, value in judge.names.items() if value is against), None)
    if given is None:
        raise ValueError("the given version of a race must be defined in a cell of the notebook.")
    templates = {"fast": (answer, judge.student), "slow": (given, judge.given_process())}
    race = _Race(templates, on, threshold, tolerance, judge.left)
    test, logs = SignTest(), []
    seconds: dict[str, list[float]] = {"slow": [], "fast": []}
    with judge.timing(), apart() as core:
        while len(logs) < MOST_LAUNCHES and test.word(ERROR) == "undecided" and judge.has_time():
            slow, fast = race.launch(core)
            logs.append(median(log_ratios(slow, fast)))
            test.add(logs[-1] - math.log(threshold))
            seconds["slow"] += slow
            seconds["fast"] += fast
    if not logs:
        raise DuelError("there was no time left for this race.")
    return Verdict(test.word(ERROR), ratio_of_logs(logs), threshold, seconds, "cpu", logs)


@dataclass
class _Race:
    templates: dict[str, tuple[str, Template]]
    on: Callable
    threshold: float
    tolerance: float | None
    left: Callable[[], float]
    plan: Plan | None = field(default=None, init=False)

    def launch(self, core: int | None) -> tuple[list[float], list[float]]:
        """Fork both sides, warm them up, time a few pairs.

        Gives seconds per call of the given version, and of the answer.
        """
        sides: dict[str, Side] = {}
        names = random.sample(list(self.templates), 2)
        try:
            # Both at once: forking takes longer than all that is timed.
            copies = {name: self._start_copy(name) for name in names}
            for name in names:
                sides[name] = Side(name, *self.templates[name], copies[name], core, self.left)
            if self.plan is None:
                self.plan = self._calibrate(sides["slow"])
            blocks = [self._pair(sides) for _ in range(WARM_UPS + PAIRS)][WARM_UPS:]
            empty = min(side.run(Calls(), []).calls for side in sides.values())
        finally:
            for side in sides.values():
                side.kill()
            for side in sides.values():
                side.end()
        return self._per_call([pair["slow"] for pair in blocks], [pair["fast"] for pair in blocks], empty)

    def _start_copy(self, name: str) -> Callable[[], Worker]:
        with _told(name):
            return self.templates[name][1].start_copy(self.left())

    def _make(self, number: int) -> list[tuple]:
        return [arguments(self.on, secrets.randbits(63), "cpu") for _ in range(number)]

    def _calibrate(self, slow: Side) -> Plan:
        """Blocks of 2 ms or more for the given version, and for an answer that is just fast enough."""
        first = self._make(1)
        start = time.process_time()
        calls = self._make(1)
        making = time.process_time() - start
        if difference(first, calls) is None:
            raise ValueError("`on` makes the same inputs each time: an answer could keep its results.")
        ready = Calls(calls)
        reply, _ = slow.results(1, slow.run(ready, [0]))
        once = min(slow.run(Calls(self._make(1)), [0]).calls for _ in range(3))
        output = len(reply.payload)
        most = min(
            MOST_CALLS,
            MOST_MAKING / max(making, 1e-6),
            MOST_INPUT_BYTES / max(ready.inputs.size, 1),
            MOST_OUTPUT_BYTES / max(output, 1),
        )
        given = max(1, min(int(most), math.ceil(BLOCK_SECONDS / max(once, 1e-7))))
        answer = max(given, min(int(most), math.ceil(BLOCK_SECONDS * self.threshold / max(once, 1e-7))))
        return Plan(given, answer)

    def _pair(self, sides: dict[str, Side]) -> dict[str, Block]:
        """One block of each side in random order, on inputs that nobody has seen; results must agree."""
        number = self.plan.answer
        calls = Calls(self._make(number))
        part = random.sample(range(number), self.plan.given)
        blocks = {
            name: sides[name].run(calls, part if name == "slow" else list(range(number)))
            for name in random.sample(list(sides), 2)
        }
        if sides["fast"].changed_inputs() and not sides["slow"].changed_inputs():
            raise AnswerError("failed", "a call changed its input, which must be left alone.")
        # All results at once: whoever computes them only now has to compute them all.
        got, reader = sides["fast"].results(number, blocks["fast"])
        try:
            results = reader.value(got.fields.get("result"))
        except Malformed as error:
            sides["fast"].template.suspicious.append(f"The answer's process sent {error}.")
            raise AnswerError("failed", f"a result cannot be read: {error}.") from None
        expected, reader = sides["slow"].results(number, blocks["slow"])
        expected = reader.value(expected.fields["result"])
        if not isinstance(results, list) or len(results) != number:
            raise AnswerError("failed", "not all results were there when the calls had ended.")
        for place, which in enumerate(part):
            pair = results[which], expected[place]
            same = all(isinstance(value, torch.Tensor) for value in pair) and _identical(*pair)
            if not same and (found := difference(*pair, None, self.tolerance)):
                raise AnswerError("failed", f"a result was wrong while it was timed: {found}")
        return blocks

    def _per_call(
        self, slow: list[Block], fast: list[Block], empty: float
    ) -> tuple[list[float], list[float]]:
        plan = self.plan
        usual = median(block.around for block in slow)
        more = median(block.around for block in fast) - SLACK_FACTOR * usual - SLACK_SECONDS
        return (
            [max(block.calls - empty, 1e-9) / plan.given for block in slow],
            [(max(block.calls - empty, 1e-9) + max(0.0, more)) / plan.answer for block in fast],
        )
