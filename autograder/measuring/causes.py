"""Why one callable is faster than another: a cause is taken away, and the pair is timed again.

Some causes go by a setting, whatever the pair is (``CAUSES``). Others only whoever wrote the pair can take
away, by other inputs or by another pair (``without``). The pair as it is and the pair without the cause are
timed in the same rounds, so noise does not make up a share.
"""

import ctypes
import multiprocessing
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, cast

import torch

from .clocks import Block, Function, Inputs, threads
from .duel import Ratio, Side, interleave, log_ratios, median_and_interval, ratio_of_logs
from .units import times

Around = Callable[[], AbstractContextManager[object]]

# A ratio nearer to 1 than this is no difference that needs a cause.
A_DIFFERENCE = 1.05
# Calls after which nothing needs new memory any more; seconds that a copy of this process may take to reply.
TO_SETTLE, LONGEST_REPLY = 6, 60
# The fewest whose interval leaves out five rounds at each end.
ROUNDS = 20


@dataclass(frozen=True)
class without:
    """A cause that is taken away by other ``inputs``, by two other ``variants``, or by both.

    Raises ValueError where neither is given, or not two variants.
    """

    cause: str
    _: KW_ONLY
    inputs: Inputs | None = None
    variants: Mapping[str, Function] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.variants) != 2 and (self.variants or not self.inputs):
            raise ValueError(f"without({self.cause!r}) needs inputs=…, or variants=… with the two, or both.")


@dataclass(frozen=True)
class Share:
    """What went of a pair's difference with a cause.

    The second side is ``there`` times faster with the cause, and ``gone`` times without it: then both take
    ``seconds``, a figure a round. ``share`` is of the difference in logarithms, 1 for all of it, with a 95 %
    interval from ``low`` to ``high``.
    """

    cause: str
    device: str
    seconds: Mapping[str, Sequence[float]]
    there: Ratio
    gone: Ratio
    share: float
    low: float
    high: float

    @property
    def word(self) -> str:
        """What the whole interval allows to say."""
        if self.there.low < A_DIFFERENCE and self.there.high > 1 / A_DIFFERENCE:
            return "no difference"
        least = (("more than all", 1.2), ("all", 0.8), ("most", 0.5), ("part", 0.1))
        little = "none" if self.high < 0.3 else "undecided"
        return next((word for word, share in least if self.low >= share), little)

    def __str__(self) -> str:
        ratios = f"{times(self.gone.median)} instead of {times(self.there.median)}"
        share = f"({self.share:.0%}, 95 % interval {self.low:.0%} to {self.high:.0%})"
        said = {
            "no difference": "There is no difference here that needs a cause.",
            "none": f"None of the difference went with that: refuted {share}.",
            "undecided": f"How much of the difference went with that is undecided {share}.",
        }.get(self.word, f"{self.word.capitalize()} of the difference went with that {share}.")
        return f"Without {self.cause}, on {self.device}: {ratios}. {said}"


def take_away(
    cause: str | without,
    sides: Mapping[str, Side],
    unequal: Callable[[Mapping[str, Side]], str | None],
    device: str = "cpu",
    num_threads: int = 1,
    **how: Any,
) -> Share:
    """Time two sides as they are and without a cause, and say which share of their difference went with it.

    ``unequal`` gives a sentence where sides that must give the same do not: all of them where a setting takes
    the cause away, the other two where that is done by other inputs or another pair. ``how`` is for
    ``interleave``. Raises ValueError where they do not, and for a cause that is unknown or cannot be taken
    away here; and what the sides raise.
    """
    if isinstance(cause, without):
        name, (first, _) = cause.cause, sides.values()
        others = cause.variants or {one: side.function for one, side in sides.items()}
        changed = {one: Side(function, cause.inputs or first.inputs) for one, function in others.items()}
    else:
        name, around = cause, _setting(cause, device, num_threads)
        changed = {
            one: replace(side, around=around, warm=name == "cold start") for one, side in sides.items()
        }
    changed = {f"{one}, without {name}": side for one, side in changed.items()}
    with threads(num_threads):
        if found := unequal({**sides, **changed} if name == cause else changed):
            raise ValueError(found)
    with _in_a_copy(changed) if cause == "page faults" else nullcontext(changed) as changed:
        how |= {"device": device, "num_threads": num_threads, "fewest": ROUNDS}
        samples = interleave({**sides, **changed}, **how)
    there = log_ratios(*map(samples.seconds, sides))
    seconds = {one: samples.seconds(one) for one in changed}
    gone = log_ratios(*seconds.values())
    shares = [1 - after / (before or 1e-9) for before, after in zip(there, gone, strict=True)]
    ratios = ratio_of_logs(there), ratio_of_logs(gone)
    return Share(name, device, seconds, *ratios, *median_and_interval(shares))


def _setting(cause: str, device: str, num_threads: int) -> Around:
    """The setting that takes a cause away while a block runs."""
    if cause not in CAUSES:
        raise ValueError(f"Causes with a name are {', '.join(CAUSES)}; for others, use without(…).")
    if device != "cpu" and cause not in ANYWHERE:
        raise ValueError(f"It is a matter of the CPU, not of {device}.")
    if cause == "threads" and num_threads == 1:
        raise ValueError("There is one thread already.")
    if cause == "page faults":
        if sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"):
            raise ValueError("Only the malloc of Linux (glibc) can be told to keep its memory.")
        if num_threads > 1:
            raise ValueError("It takes a copy of this process, which has one thread.")
    return CAUSES[cause]


@contextmanager
def _in_a_copy(sides: Mapping[str, Side]) -> Iterator[dict[str, Side]]:
    """These sides in a copy of this process, whose malloc keeps all memory: after some calls, all that they
    need was written before.

    Not here: glibc raises the size from which on a piece is the system's (128 kB to 32 MB) when one is freed,
    until somebody sets anything, and nothing brings that back. Later timings would be others.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def serve() -> None:
        here.close()
        torch.set_num_threads(1)  # a copy has no others
        library = ctypes.CDLL(None)
        library.mallopt(-4, 0)  # M_MMAP_MAX
        library.mallopt(-1, -1)  # M_TRIM_THRESHOLD
        for side in [*sides.values()] * TO_SETTLE:
            side.block(1, 1, "cpu")
        while True:
            name, *block = there.recv()
            there.send(sides[name].block(*block))

    copy = context.Process(target=serve, daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a notebook has threads; none of them computes
        copy.start()
    there.close()

    def block(*asked: object) -> Block:
        here.send(asked)
        if not here.poll(LONGEST_REPLY):
            raise ValueError(f"A copy of this process did not answer within {LONGEST_REPLY} s.")
        return cast(Block, here.recv())

    try:
        yield {name: replace(side, elsewhere=partial(block, name)) for name, side in sides.items()}
    except (EOFError, ConnectionError) as error:
        raise ValueError("A copy of this process, with memory of its own, ended early.") from error
    finally:
        copy.kill()
        copy.join()


@contextmanager
def _no_denormals() -> Iterator[None]:
    """Numbers too small for full precision count as 0, in the thread that computes."""
    before = (torch.tensor(1e-40) * 1).item() == 0
    if not torch.set_flush_denormal(True):
        raise ValueError("This processor cannot take them for 0.")
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


@contextmanager
def _no_huge_pages() -> Iterator[None]:
    """New memory comes in pages of the usual size, even where the system or the program asks for others."""
    if sys.platform != "linux":
        raise ValueError("Only Linux can be told to give a process none.")
    set_, get, library = 41, 42, ctypes.CDLL(None)  # PR_SET_THP_DISABLE, PR_GET_THP_DISABLE
    before = library.prctl(get, 0, 0, 0, 0)
    library.prctl(set_, 1, 0, 0, 0)
    try:
        yield
    finally:
        library.prctl(set_, before, 0, 0, 0)


CAUSES: dict[str, Around] = {
    "page faults": nullcontext,  # what is timed without them has a process of its own
    "recording": torch.no_grad,
    "threads": partial(threads, 1),
    "denormals": _no_denormals,
    "huge pages": _no_huge_pages,
    "cold start": nullcontext,  # what is timed follows a call that is not
}
ANYWHERE = {"recording", "cold start"}
