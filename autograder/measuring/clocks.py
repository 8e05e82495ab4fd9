"""One block of calls, and what it took: wall, CPU and GPU-event seconds, and page faults."""

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch

from . import gpus
from .settings import wanted_devices

if sys.platform != "win32":
    import resource

Function: TypeAlias = Callable[..., object]
MakesInputs: TypeAlias = Callable[[torch.Generator, str], object]  # of a call, on a device
Inputs: TypeAlias = MakesInputs | int | tuple[int, ...]  # or the shape of random numbers from 0 to 1

BLOCK_SECONDS = 0.002
LONGEST_BLOCK = 0.2
READINGS = 5
MOST_CALLS = 10_000_000


@dataclass(frozen=True)
class Block:
    """What a block of ``calls`` calls took, in seconds for the whole block.

    ``cpu`` counts all threads of this process. ``gpu`` is the time between two events on the GPU's current
    stream, or None where the work is not on a GPU. ``faults`` are page faults of this process. ``waited`` is
    what the idle GPU let one wait beside its work before the block: long where somebody else uses it, too.
    """

    calls: int
    wall: float
    cpu: float
    gpu: float | None
    faults: int
    waited: float = 0.0

    def per_call(self, clock: str) -> float:
        """Seconds per call on ``clock``: "wall", "cpu", or the kind of GPU whose events count."""
        seconds: float = getattr(self, "gpu" if clock in gpus.KINDS else clock)
        return seconds / self.calls


def present() -> list[str]:
    """The devices that work here: "cpu", and "cuda" or "mps" where there is one."""
    return ["cpu", *filter(gpus.works, gpus.KINDS)]


def devices() -> list[str]:
    """The devices that a cell should run on here: all, or those that ``settings`` names."""
    wanted = wanted_devices()
    return [device for device in present() if not wanted or device in wanted]


def default_clock(device: str) -> str:
    """The clock that a device is judged on: events on a GPU, the process's CPU clock elsewhere.

    Windows counts CPU time in steps of 16 ms, so there it is the wall clock.
    """
    if gpus.is_gpu(device):
        return torch.device(device).type
    return "wall" if sys.platform == "win32" else "cpu"


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Run torch's CPU operations on ``number`` threads; None leaves the setting alone."""
    before = torch.get_num_threads()
    if number is None or number == before:
        yield
        return
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run_block(function: Function, arguments: tuple[object, ...], calls: int, device: str = "cpu") -> Block:
    """Call ``function(*arguments)`` ``calls`` times and say what that took.

    On a GPU the device is idle and its L2 cache overwritten before the first call, and all work has ended
    before the clocks are read. Python's garbage collector waits, as in ``timeit``.
    """
    on_gpu = gpus.is_gpu(device)
    if on_gpu:
        waited = make_ready(device)
        start_event, end_event = _events(device)
    collecting = gc.isenabled()
    gc.disable()
    try:
        faults = _page_faults()
        if on_gpu:
            start_event.record()
            start_event.query()  # Windows keeps commands back until somebody asks
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(calls):
            function(*arguments)
        if on_gpu:
            end_event.record()
            gpus.wait(device)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        faults = _page_faults() - faults
    finally:
        if collecting:
            gc.enable()
    if not on_gpu:
        return Block(calls, wall, cpu, None, faults)
    return Block(calls, wall, cpu, start_event.elapsed_time(end_event) / 1e3, faults, waited)


def make_ready(device: str) -> float:
    """Overwrite the cache of a GPU that is idle; gives what it let one wait beside that, in seconds."""
    start_event, end_event = _events(device)
    flush_cache(device)  # after a copy it is this process's turn, without a wait
    gpus.wait(device)
    start = time.perf_counter()
    start_event.record()
    flush_cache(device)
    end_event.record()
    gpus.wait(device)
    return time.perf_counter() - start - start_event.elapsed_time(end_event) / 1e3


def _events(device: str) -> tuple[torch.Event, torch.Event]:
    event = partial(torch.get_device_module(device).Event, enable_timing=True)
    return event(), event()


def calibrate(
    function: Function, arguments: tuple[object, ...], device: str = "cpu", clock: str | None = None
) -> int:
    """The number of calls for a block of ``BLOCK_SECONDS`` or more; warms the function up.

    ``clock`` is the one that judges (by default that of the device). A function that mostly waits may not
    reach that length on the CPU clock: ``LONGEST_BLOCK`` of wall time is enough, too.
    """
    clock = clock or default_clock(device)
    run_block(function, arguments, 1, device)

    search = BlockSearch()
    while not search.found:
        block = run_block(function, arguments, search.calls, device)
        waits = block.wall > LONGEST_BLOCK
        search.take(block.wall if waits else search.calls * block.per_call(clock))
    return search.calls


class BlockSearch:
    """Finds the number of ``calls``, at most ``most``, for which a block lasts ``BLOCK_SECONDS`` or more.

    Until ``found``, time a block of ``calls`` calls on the clock that judges, and ``take`` the reading.
    Whatever else the machine does makes a reading longer, hardly ever shorter: so the shortest of
    ``READINGS`` counts, and it must be a quarter above what is asked for, because code gets faster while it
    is repeated.
    """

    def __init__(self, most: int = MOST_CALLS) -> None:
        self.calls, self._most, self._readings = 1, most, 0
        self.found = most <= 1

    def take(self, seconds: float) -> None:
        """One more reading of a block of ``calls`` calls."""
        enough = 1.25 * BLOCK_SECONDS
        self._readings += 1
        if seconds >= enough:
            self.found = self._readings == READINGS
            return
        # The same growth as timeit's autorange, but bounded.
        grown = int(1.3 * self.calls * enough / max(seconds, 1e-9)) + 1
        self.calls = min(max(self.calls + 1, min(10 * self.calls, grown)), self._most)
        self.found, self._readings = self.calls == self._most, 0


def _page_faults() -> int:
    """Of this process so far; 0 where nobody counts them."""
    if sys.platform == "win32":
        return 0
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt + usage.ru_majflt


_l2_scratch: dict[int, torch.Tensor] = {}


def flush_cache(device: str) -> None:
    """Overwrite the L2 cache of a GPU, whose work goes on afterwards. Apple does not say how large its is."""
    if torch.device(device).type != "cuda":
        return
    index = torch.device(device).index
    if index is None:
        index = torch.cuda.current_device()
    if index not in _l2_scratch:
        size = max(torch.cuda.get_device_properties(index).L2_cache_size, 1 << 20)
        _l2_scratch[index] = torch.empty(2 * size, dtype=torch.int8, device=f"cuda:{index}")
    _l2_scratch[index].zero_()
