"""race: is the answer fast enough, against the given slow version, on this machine, in this run?"""

import math
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from weakref import WeakKeyDictionary

import torch

from ..files import json_in
from ..measuring import store
from ..measuring.clocks import Function, devices
from ..measuring.costs import costs
from ..measuring.decide import FAR, SAME
from ..measuring.duel import DuelError, TooNoisy, Verdict, duel_here, fresh_inputs
from ..measuring.gpus import refused, with_float64
from ..measuring.limits import limit
from ..measuring.selfcheck import check_here
from ..measuring.units import counted, size, times
from ..show import in_notebook
from .calls import Answer, AnswerError, call, describe_error, found_wrong, refuse_nonsense, stopped_gpu
from .outcome import Outcome, notes, partial_points
from .values import change_of_inputs, change_tensors, difference, precise, tensors

# So often an answer is called before it is timed: what its first calls do, such as compile, is no part of the
# race. torch.compile takes the second call to see that sizes change.
WARM_UPS = 3
# What a verdict means for the answer: the ratio asked for, to within 3 %, is fast enough.
WORDS = {"faster": "passed", "as fast": "passed", "slower": "failed", "undecided": "undecided"}
# A given version in these is off by so much itself that what it gives in float64 is compared.
SHORT = (torch.float16, torch.bfloat16)
# A limit is measured to within some 20 %; what is faster by this factor has not done the work.
TOO_FAST = 1.5
# Less than 40 % faster counts as no faster: the given version itself, handed in, has come out 31 % faster.
NO_FASTER = 1.4
# How many times as fast as given the best known answer is, by the names of given version and inputs.
BEST = Path(__file__).resolve().parents[2] / "data" / "best.json"
# How many times as fast as a given version an answer was that passed its race, the last one in this session.
gains: WeakKeyDictionary[Function, float] = WeakKeyDictionary()
# For a passed race on the CPU, by the share of that; no points hang on them.
MEDALS = {"Gold": 1.0, "Silver": 0.8, "Bronze": 0.0}
OFFER = "Faster than the course's best! With `# you may show this` in it, your class may see it afterwards."


def race(
    function: Function,
    *,
    against: Function,
    on: Function,
    at_least: Mapping[str, float],
    points: float,
    tolerance: float | None = None,
    bytes: float = 0,
    flops: float = 0,
) -> Outcome:
    """Test that ``function`` is ``at_least`` so many times as fast as ``against``; show a card.

    Gives the Outcome. ``on(generator, device)`` makes the inputs, anew for every block of calls. ``at_least``
    maps a device ("cpu", "cuda") to the ratio it asks for; devices that are not here are left out, and where
    none is left the points are not counted against the student. A wrong answer is not timed. On the CPU one
    thread is used and the process's CPU clock decides. Between "as fast as given" and the ratio asked for,
    points grow with the logarithm of the ratio, but below 1.4 there are none; several devices count equally.
    ``tolerance`` is that of ``check``. ``bytes`` and ``flops`` are what one call must at least move and
    compute; they add a bar with the least time that the device could take, and the share of that limit. An
    answer far beyond the limit is undecided and gets no points: an instructor looks at it.
    """
    refuse_nonsense(function, against, on, points)
    for device, ratio in at_least.items():
        if not 1 < ratio < math.inf:
            raise ValueError(f"at_least[{device!r}] must be above 1 (times as fast as given), not {ratio!r}.")
    present = [device for device in devices() if device in at_least]
    if not present:
        summary = f"there is no {' or '.join(at_least)} here; these points are not counted against you."
        return Outcome("not available", points, points, summary, facts={"laps": []}).show()
    said: list[str] = []
    laps = []
    try:
        for device in present:
            expect_right(function, against, on, device, tolerance, said)
            asked = at_least[device]
            if isinstance(function, Answer):
                verdict = function.duel(against, on, threshold=asked, tolerance=tolerance)
            else:
                check_here()
                verdict = duel_here(against, function, on, threshold=asked, device=device)
            lap = _Lap(device, verdict, limit(bytes, flops, device=device) if bytes or flops else None)
            if lap.too_fast:
                lap = replace(lap, least=limit(bytes, flops, device=device, anew=True))
            laps.append(lap)
    except AnswerError as problem:
        summary, *details = str(problem).split("\n")
        return Outcome(problem.word, 0, points, summary, [*details, *notes(said)]).show()
    except DuelError as problem:
        word = "undecided" if isinstance(problem, TooNoisy) else "failed"
        summary = str(problem).replace("'fast'", "your function").replace("'slow'", "the given version")
        return Outcome(word, 0, points, summary, notes(said)).show()
    except RuntimeError as error:
        if not (stopped := stopped_gpu(error)):
            raise
        return Outcome("error", 0, points, stopped, [describe_error(error)]).show()
    remarks = notes(said)
    if "mps" in devices() and "cuda" in at_least:
        remarks.append(_on_apples_gpu(function, against, on, tolerance))
    if all(lap.word == "passed" for lap in laps):
        with suppress(TypeError):  # a given version of which there are no weak references
            gains[against] = laps[0].verdict.ratio.median
        for lap in (lap for lap in laps if lap.device == "cpu"):
            remarks += _medal(against, on, lap.verdict.ratio.median)
    return _judge(laps, points, remarks, lambda lap: _tip(function, on, lap)).show()


def as_foretold(said: float, against: Function, within: float) -> bool:
    """Whether the last race against a given version was passed, and as foretold, to within a factor."""
    found = gains.pop(against, 0)
    print(f"{said:g} was foretold, {found:.3g} measured")
    return is_near(said, found, within)


def is_near(said: float, found: float, within: float) -> bool:
    """Whether a gain that was found, 0 for none, is what was said, to within a factor."""
    return 0 < found <= within * said and said <= within * found


@dataclass(frozen=True)
class _Lap:
    """One device's part of a race; ``least`` is the limit of the machine in seconds, or None."""

    device: str
    verdict: Verdict
    least: float | None

    @property
    def of_limit(self) -> float | None:
        """The share of the limit that the answer reaches, where a limit is known."""
        return self.least / median(self.verdict.seconds["fast"]) if self.least else None

    @property
    def too_fast(self) -> bool:
        return (self.of_limit or 0) > TOO_FAST

    @property
    def word(self) -> str:
        return "undecided" if self.too_fast else WORDS[self.verdict.word]

    @property
    def share(self) -> float:
        """The part of the points, from 0 to 1."""
        if self.too_fast:
            return 0.0
        if self.word == "passed":
            return 1.0
        # Undecided is what is not shown; so the answer gets what is.
        ratio = self.verdict.ratio.low if self.word == "undecided" else self.verdict.ratio.median
        return min(1.0, math.log(ratio) / math.log(self.verdict.threshold)) if ratio >= NO_FASTER else 0.0


def expect_right(
    function: Function, against: Function, on: Function, device: str, tolerance: float | None, said: list[str]
) -> None:
    """Call both on equal inputs; ``said`` gets what the answer wrote. Raises AnswerError if it is wrong."""
    if case := found_wrong(function):
        raise AnswerError(
            "failed", f"not timed, because the test on {case} found the answer wrong. Mend that first."
        )
    for _ in range(WARM_UPS):
        seed = secrets.randbits(31)
        made = partial(fresh_inputs, on, seed, device)
        mine, theirs = made(), made()
        got, expected = call(function, mine, said), against(*theirs)
        exact = None
        if any(tensor.dtype in SHORT for tensor in tensors(expected)):
            exact = against(*change_tensors(fresh_inputs(on, seed, with_float64(device)), precise))
        if found := difference(got, expected, exact, tolerance):
            raise AnswerError("failed", f"not timed, because the answer is wrong: {found}")
        if found := change_of_inputs(mine, theirs, made, against, tolerance):
            raise AnswerError("failed", f"not timed, because the call changed its input: {found}")


def _on_apples_gpu(function: Function, against: Function, on: Function, tolerance: float | None) -> str:
    """What a race comes to there."""
    try:
        expect_right(function, against, on, "mps", tolerance, [])
        ratio = duel_here(against, function, on, threshold=1, device="mps").ratio
    except (AnswerError, DuelError, TypeError, RuntimeError) as problem:
        why = refused("mps", problem) or str(problem).split("\n")[0]
        return f"Not timed on Apple's GPU: {why}."
    return (
        f"{times(ratio.median)} as fast as given on Apple's GPU ({times(ratio.low)} to {times(ratio.high)}; "
        "Metal's events). No ratio is asked for there."
    )


def _tip(function: Function, on: Function, lap: _Lap) -> str:
    """What a slow answer asks of torch: often enough to see why it is slow."""
    try:
        cost = costs(function, *fresh_inputs(on, secrets.randbits(31), lap.device))
    except AnswerError as problem:
        return str(problem)
    if cost.doubt:
        return str(cost.doubt)
    return (
        f"One call of yours asks torch for {counted(cost.operations.total(), 'operation')}, "
        f"{counted(cost.copies, 'copy', 'copies')} and {size(cost.bytes)} of new memory."
    )


def _medal(against: Function, on: Function, ratio: float) -> list[str]:
    """What a passed race earns beside its points; in a notebook, the reader's best is kept and told."""
    name, said = " on ".join(getattr(one, "__name__", "?") for one in (against, on)), list[str]()
    with suppress(KeyError):
        found = json_in(BEST)
        best, where = found["races"][name], found["machine"]["name"]
        medal = next(medal for medal, share in MEDALS.items() if ratio > share * best)
        said.append(f"{medal}. The course's best answer: {times(best)} as fast as given, on {where} (CPU).")
        said += [OFFER] if medal == "Gold" else []
    if in_notebook():
        kept = store.read("best")
        if (before := kept.get(name, 0)) > ratio:
            said.append(f"Your best so far: {times(before)}.")
        store.write("best", kept | {name: max(before, ratio)})
    return said


def _judge(laps: list[_Lap], points: float, remarks: list[str], tip: Callable[[_Lap], str]) -> Outcome:
    word = min((lap.word for lap in laps), key=("failed", "undecided", "passed").index)
    earned = min(points, round(points * sum(lap.share for lap in laps) / len(laps), 2))
    details = [tip(lap) for lap in laps if lap.word == "failed"]
    if any(lap.too_fast for lap in laps):
        details.append("That is faster than this machine can be. Your instructor looks at it.")
    elif word == "undecided":
        details.append(
            "No verdict yet, and no failure: it is too close to call on this machine just now. Close other "
            "programs and run it again."
        )
    if earned < points and not any(lap.too_fast for lap in laps):
        details.append(_how_partial(laps, earned, points))
    facts = {
        "laps": [
            {
                "device": lap.device,
                "clock": lap.verdict.clock,
                "word": lap.verdict.word,
                "ratio": lap.verdict.ratio.median,
                "interval": [lap.verdict.ratio.low, lap.verdict.ratio.high],
                "required": lap.verdict.threshold,
                "logs": [round(value, 4) for value in lap.verdict.logs],
                "thrown_away": lap.verdict.thrown_away,
                "signs_only": lap.verdict.signs_only,
                "of_limit": lap.of_limit,
                "too_fast": lap.too_fast,
            }
            for lap in laps
        ]
    }
    bars = {f"{lap.device}: " * (len(laps) > 1) + name: s for lap in laps for name, s in _bars(lap).items()}
    return Outcome(word, earned, points, "; ".join(map(_sentence, laps)), [*details, *remarks], bars, facts)


def _how_partial(laps: list[_Lap], earned: float, points: float) -> str:
    if len(laps) > 1:
        devices_here = " and ".join(lap.device for lap in laps)
        return f"{earned:g} of {points:g} points: the mean of what {devices_here} earn."
    (lap,) = laps
    shown = f" {times(lap.verdict.ratio.low)} is shown." if lap.word == "undecided" else ""
    none = f"1× (below {times(NO_FASTER)} there are none)"
    return partial_points(earned, points, none, times(lap.verdict.threshold)) + shown


def _bars(lap: _Lap) -> dict[str, float]:
    """Seconds per call, by name."""
    given, yours = (median(lap.verdict.seconds[name]) for name in ("slow", "fast"))
    bars = {"given": given, "asked for": given / lap.verdict.threshold, "yours": yours}
    return bars | {"limit of this machine": lap.least} if lap.least else bars


def _sentence(lap: _Lap) -> str:
    ratio = lap.verdict.ratio
    clock = {"cpu": "CPU clock, one thread", "cuda": "CUDA events", "wall": "wall clock"}[lap.verdict.clock]
    said = (
        f"{times(ratio.median)} as fast as given on {lap.device}, {times(lap.verdict.threshold)} asked for "
        f"({times(ratio.low)} to {times(ratio.high)}; {clock})."
    )
    limited = f" It reaches {lap.of_limit:.0%} of this machine's limit." if lap.of_limit else ""
    near = f" That is what was asked for, to within {SAME - 1:.0%}: it counts in full."
    uneven = f" On this machine many launches are off by more than {times(FAR)}, so only their signs count."
    return said + limited + near * (lap.verdict.word == "as fast") + uneven * lap.verdict.signs_only
