"""A race on a device between two processes with contexts of their own, neither of which is believed.

``docs/judge.md`` says how ("On a GPU"). Inputs are handed over one call at a time, so nothing is gained by
computing several at once. The unit of evidence is the launch, as on the CPU (``sandbox.racing.launches``):
fresh processes, which turn about, and one ratio.
"""

import glob
import math
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache
from statistics import median
from typing import Any, NoReturn

import torch

from ..judging.calls import AnswerError
from ..judging.values import change_tensors
from ..measuring.clocks import MakesInputs, flush_cache, make_ready, threads
from ..measuring.decide import decide
from ..measuring.duel import TRY_LATER, WAITED, DuelError, TooNoisy, Verdict, fresh_inputs
from ..measuring.gpus import wait
from ..sandbox.answers.answer_link import TimeLeft
from ..sandbox.racing.launches import Launches
from ..sandbox.racing.machine_lock import cores
from ..sandbox.racing.side import Done, GivenInputs, Restless, Result, told
from ..sandbox.racing.undisturbed import SIDES, Launch
from ..sandbox.walls import bubblewrap, linux
from ..sandbox.wire import decode, messages
from ..sandbox.wire.channel import Channel, Malformed, pair
from . import answer_on_device, device_memory
from .answer_on_device import SPIN_SECONDS, Begin

ERROR = 1e-3  # the probability of each kind of wrong verdict, at most
MOST_BYTES = 128 << 20  # of inputs, and of results
PICKS = 256  # values of a result that stop the clock
FIRST_CALLS = 4  # of a launch, after its first one, which are not timed either
BLOCK_SECONDS = 0.02  # of the given version's calls, at least
FEWEST_CALLS, MOST_CALLS = 3, 30
MOST_LAUNCHES = 40
START_SECONDS, CALL_SECONDS = 120.0, 10.0
OF_THE_DRIVER = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")  # variables
LATE = f"did not return within {CALL_SECONDS:g} s a call"
# The least that a call of the given version takes, as a multiple of what one takes that does nothing.
FEWEST_TIMES = 10
SHORTEST = 1e-6  # seconds that count for a call at least
SLOWER, LOOKS, FEW = 1.5, 5, 3  # what shows work beside the calls; looks at it; launches that may show it


@dataclass(frozen=True)
class Work:
    """One side: cells, as text, that define the function ``name``."""

    cells: Sequence[str]
    name: str


def judge_on_device(
    given: Work,
    answer: Work,
    on: MakesInputs,
    *,
    threshold: float,
    device: str = "cuda",
    tolerance: float | None = None,
) -> Verdict:
    """Whether the answer is ``threshold`` times as fast as the given version, on "cuda" (or "cpu").

    ``on(generator, device)`` makes the inputs of a call: tensors and plain values. Raises DuelError for a
    side that cannot be timed, and where no memory can be shared, AnswerError for a wrong result or broken
    rules, ValueError for inputs that are always the same, TooNoisy where something else works on the device.
    """
    if device != "cpu" and median(make_ready(device) for _ in range(LOOKS)) > WAITED:
        raise TooNoisy(TRY_LATER)
    with ExitStack() as stack, threads(1):  # helpers of torch's would take the core that a side runs on
        works, apart = {"slow": given, "fast": answer}, isolation(device)
        # Most of a short call is to launch kernels: a core of their own, the same for both sides.
        core = stack.enter_context(linux.first_kept_free(cores()))
        sides = {name: stack.enter_context(_Side(name, works[name], device, apart, core)) for name in SIDES}
        launches = _Launches(sides, on, threshold, tolerance)
        launches.plan()
        return launches.verdict(decide(launches.ratios(), ERROR), "wall", signs_only=True)


class _GivenInputs(GivenInputs):
    """The inputs of one call: on the device, ready to be copied to either side."""

    def __init__(self, values: tuple, device: str) -> None:
        super().__init__(
            change_tensors(values, lambda tensor: tensor.detach().cpu().requires_grad_(tensor.requires_grad))
        )
        if self.inputs.size > MOST_BYTES:
            raise ValueError(f"the inputs of a call have more than {MOST_BYTES >> 20} MiB.")
        flat = torch.zeros(self.inputs.size, dtype=torch.uint8)
        for storage in self.inputs.storages:
            if storage.owner is None:
                raise TypeError("the inputs of a race on a device are tensors and plain values.")
            flat[storage.place] = storage.tensor
        self.bytes = flat.to(device)


class _Launches(Launches):
    """Launches on a device. How many calls make a block is found in the first one, while it warms up."""

    few_restless = FEW

    def __init__(
        self, sides: Mapping[str, "_Side"], on: MakesInputs, threshold: float, tolerance: float | None
    ) -> None:
        starts = {name: side.begin for name, side in sides.items()}
        super().__init__(starts, on, threshold, tolerance, TimeLeft(math.inf))
        self._both, self._device, self.most_launches = sides.values(), sides["slow"].device, MOST_LAUNCHES
        self._first_calls = dict.fromkeys(SIDES, FIRST_CALLS)

    def plan(self) -> None:
        self._two_inputs()

    def _may_begin(self) -> bool:
        alone = _flush_seconds(self._device)
        for side in self._both:
            side.alone = alone
        return True

    def _inputs(self) -> _GivenInputs:
        return _GivenInputs(fresh_inputs(self._on, secrets.randbits(63), self._device), self._device)

    def _warmed_up(self, done: Mapping[str, Done]) -> dict[str, int]:
        """Raises DuelError where a call is too short."""
        if not self._calls:
            idle = min(done["slow"].ways)
            work = min(result.seconds for result in done["slow"].results) - idle
            if work < FEWEST_TIMES * idle:
                raise DuelError(
                    f"'slow' takes {1e6 * max(work, 0):.0f} µs a call, too little to be judged here: "
                    f"{1e6 * FEWEST_TIMES * idle:.0f} µs are needed. Take larger inputs."
                )
            calls = min(MOST_CALLS, max(FEWEST_CALLS, math.ceil(BLOCK_SECONDS / work)))
            self._calls = dict.fromkeys(SIDES, calls)
        return self._calls

    def _per_call(self, done: Mapping[str, Done], calls: Mapping[str, int]) -> dict[str, float]:
        """Seconds per call of each side, without what the given version's calls take without their work."""
        idle = median(done["slow"].ways[1:])
        taken = {name: median(result.seconds for result in done[name].results[1:]) for name in SIDES}
        return {name: max(taken[name] - idle, SHORTEST) for name in SIDES}

    def _counting(self, launch: Launch) -> Iterator[Launch]:
        return iter([launch])


@dataclass
class _Side:
    """One side: a process that forks for each launch, and the memory that it shares with the judge."""

    name: str
    work: Work
    device: str
    walls: Sequence[str]
    core: int | None = None  # that its processes run on
    alone: float = field(default=math.inf, init=False)  # seconds for the device's cache, with nobody there
    _channel: Channel = field(default_factory=lambda: pair()[0], init=False)  # to the launch
    _used: int = field(default=0, init=False)  # bytes of the memory for results, at most so far

    def __enter__(self) -> "_Side":
        self._memory = device_memory.allocate(2 * MOST_BYTES, self.device)
        self._inputs, self._results = self._memory.contents[:MOST_BYTES], self._memory.contents[MOST_BYTES:]
        self._control, other = pair()
        python, variables = self.walls, dict[str, str]()
        if not self.walls:
            python = [sys.executable]
            variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with other:
            self._process = subprocess.Popen(
                [*python, "-m", answer_on_device.__name__, str(other.fileno()), self.device],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=variables,
            )
        self._first = self._process.pid
        try:
            with told(self.name, LATE):
                messages.parse(self._control.receive(START_SECONDS), messages.Hello)
        except BaseException:
            self.__exit__()
            raise
        self._first = self._control.pid  # of its processes, by its number here
        if self.core is not None:
            os.sched_setaffinity(self._first, {self.core})  # and of those that it starts
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._control.close()
        self._process.kill()
        linux.kill(self._first)
        self._process.wait()
        self._memory.close()

    def begin(self, left: object) -> Callable[[], "_Side"]:
        """Start a fresh process, which runs the cells."""
        self._signal(signal.SIGCONT)
        self._channel, other = pair()
        begin = Begin(list(self.work.cells), self.work.name, MOST_BYTES, self._memory.ticket)
        with other, told(self.name, LATE):
            files = [other.fileno(), *self._memory.files]
            self._control.send(begin, files=files, seconds=START_SECONDS)
        return self._await_ready

    def _await_ready(self) -> "_Side":
        """Wait until the cells have run, and stop it."""
        with told(self.name, LATE):
            self._reply(messages.Hello, START_SECONDS)
        self._signal(signal.SIGSTOP)
        return self

    def reserve(self, block: Sequence[_GivenInputs]) -> None:
        """The memory is there. Raises Restless where something works on the device."""
        if _flush_seconds(self.device) > SLOWER * self.alone:
            raise Restless(self)

    def run(self, block: Sequence[_GivenInputs], keep: bool = False) -> Done:
        """Do these calls, one after the other; and what the same takes without the work, in seconds.

        Of the given version only: the answer's process could make what is taken off as long as it likes.
        """
        results, ways = [], []
        self._signal(signal.SIGCONT)
        with told(self.name, LATE):
            for given in block:
                inputs = messages.RaceInputs(given.tensors, given.inputs.places(), keep=False)
                self._channel.send(inputs, seconds=CALL_SECONDS)
                self._reply(messages.Hello, CALL_SECONDS)
                results.append(self._call(given))
                if self.name == "slow":
                    ways.append(self._call(given, work=False).seconds)
        self._signal(signal.SIGSTOP)
        self.reserve(block)
        return Done(results, ways)

    def refuse(self) -> NoReturn:
        raise AnswerError("failed", "not timed, because something works on the device beside the calls.")

    def _call(self, given: _GivenInputs, work: bool = True) -> Result:
        """One call. Nobody knows its inputs before the clock runs, nor which values stop it."""
        room = self._inputs[: len(given.bytes)]
        self._results[: self._used].view(torch.int64).fill_(secrets.randbits(63))
        flush_cache(self.device)
        wait(self.device)
        start = time.perf_counter()
        room.copy_(given.bytes)
        wait(self.device)
        self._channel.send(messages.RaceCall(given.nodes, work), seconds=CALL_SECONDS)
        self._channel.spin(SPIN_SECONDS)
        reply = self._reply(messages.Found, CALL_SECONDS)
        end = _end(reply.value)
        if end > MOST_BYTES:
            raise Malformed("a result beyond its memory")
        words = self._results[: -(-end // 8) * 8].view(torch.int64)
        self._used = max(self._used, 8 * len(words))
        places = torch.randint(max(len(words), 1), (PICKS if len(words) else 0,), device=self.device)
        picked = words[places].cpu()
        seconds = time.perf_counter() - start
        whole = words.cpu()
        if not torch.equal(whole[places.cpu()], picked):
            raise AnswerError("failed", "a result was not ready when its call returned.")
        memory = bytearray(whole.numpy().tobytes())
        where = "cpu" if self.device == "cpu" else str(self._results.device)
        value = decode.Reader(memory, given.inputs.storages, decode.opaque, where).value(reply.value)
        changed = not torch.equal(room, given.bytes)
        return Result(reply.value, value, end, False, changed, seconds)

    def _reply(self, kind: type[messages.Message], seconds: float) -> Any:
        frame = self._channel.receive(seconds)
        for file in frame.files:  # nobody here wants any
            os.close(file)
        reply = messages.parse(frame, kind | messages.Raised)  # type: ignore[arg-type]
        if isinstance(reply, messages.Raised):
            raise DuelError(f"{self.name!r} raised {reply.told}")
        return reply

    def kill(self) -> None:
        """End the launch, with all that it started."""
        self._channel.close()
        for pid in linux.with_descendants(self._first)[1:]:
            linux.kill(pid)

    def await_end(self) -> None:
        """The next launch begins with that."""

    def _signal(self, number: int) -> None:
        """Let the launch and all that it started go on, or stop them."""
        members = linux.with_descendants(self._first)[1:]
        for pid in members:
            linux.send_signal(pid, number)
        end = time.monotonic() + CALL_SECONDS
        while number == signal.SIGSTOP and any(set(linux.states(pid)) - set("TZX") for pid in members):
            if time.monotonic() > end:
                raise DuelError(f"{self.name!r} could not be stopped.")


@cache
def isolation(device: str) -> list[str]:
    """What the processes of both sides are started with, as strict as this machine allows.

    No network, no file or variable of this account's, and no other processes in sight; or these in sight,
    where the driver shares no memory otherwise; or nothing, where that does not work: then all of this
    account is in reach, and only times are judged.
    """
    program = shutil.which("bwrap")
    variables = bubblewrap.environment([bubblewrap.TEMPORARY], "", bubblewrap.TEMPORARY, namespaces=False)
    more = ["--tmpfs", "/dev/shm"]
    if device != "cpu":
        variables |= {name: os.environ[name] for name in OF_THE_DRIVER if name in os.environ}
        for node in (*glob.glob("/dev/nvidia*"), "/dev/dxg"):
            more += ["--dev-bind-try", node, node]
        for folder in ("/sys", *variables.get("LD_LIBRARY_PATH", "").split(os.pathsep)):
            if os.path.isabs(folder):
                more += ["--ro-bind-try", folder, folder]
    for namespaces in (bubblewrap.NAMESPACES, ("user", "net", "uts")) if program else ():
        line = bubblewrap.walls(str(program), namespaces, variables, more)
        with suppress(DuelError), _Side("trial", Work(["trial = None"], "trial"), device, line) as side:
            side.begin(None)()
            return line
    return []


def _flush_seconds(device: str) -> float:
    """What it takes at best to overwrite the device's cache; 0 for the CPU, where this says nothing."""
    taken = []
    for _ in range(LOOKS if device != "cpu" else 0):
        wait(device)
        start = time.perf_counter()
        flush_cache(device)
        wait(device)
        taken.append(time.perf_counter() - start)
    return min(taken, default=0.0)


def _end(node: messages.Value) -> int:
    """How many bytes of the memory for results a result lies in."""
    match node:
        case messages.TensorNode(buffer=place) | messages.ArrayNode(buffer=place):
            return sum(place) if place else 0
        case messages.CollectionNode(items=items):
            return max(map(_end, items), default=0)
    return 0
