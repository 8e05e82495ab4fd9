"""race: is the answer fast enough, against the given slow version, on this machine, in this run?"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping

from ..measuring.clocks import devices
from ..measuring.costs import costs
from ..measuring.duel import Samples, arguments, interleave
from ..measuring.units import counted, size, times
from .calls import AnswerError, call, found_wrong, refuse_nonsense
from .outcome import Bar, Outcome, notes
from .values import difference

# Less than 10 % faster counts as no faster: it could be luck.
NO_FASTER = 1.1


def race(
    function: Callable,
    *,
    against: Callable,
    on: Callable,
    at_least: Mapping[str, float],
    points: float,
    seconds: float = 0.6,
) -> Outcome:
    """Test that ``function`` is ``at_least`` so many times as fast as ``against``; show a card.

    Gives the Outcome. ``on(generator, device)`` makes the inputs, anew for every block of calls. ``at_least``
    maps a device ("cpu", "cuda") to the ratio it asks for; devices that are not here are left out, and where
    none is left the points are not counted against the student. A wrong answer is not timed. On the CPU one
    thread is used and the process's CPU clock decides. Between "as fast as given" and the ratio asked for,
    points grow with the logarithm of the ratio; several devices count equally. ``seconds`` is the time to
    spend for each.
    """
    refuse_nonsense(function, against, on, points)
    for device, ratio in at_least.items():
        if not ratio > 1:
            raise ValueError(f"at_least[{device!r}] must be above 1 (times as fast as given), not {ratio!r}.")
    present = [device for device in devices() if device in at_least]
    if not present:
        missing = " or ".join(at_least)
        summary = f"there is no {missing} device here; these points are not counted against you."
        return Outcome("not available", points, points, summary).show()
    said: list[str] = []
    try:
        laps = [_lap(function, against, on, device, at_least[device], seconds, said) for device in present]
    except AnswerError as problem:
        summary, *details = str(problem).split("\n")
        return Outcome(problem.word, 0, points, summary, [*details, *notes(said)]).show()
    return _judge(laps, points, said).show()


class _Lap:
    """One device's part of a race."""

    def __init__(self, samples: Samples, device: str, required: float, tip: str) -> None:
        self.samples, self.device, self.required, self.tip = samples, device, required, tip
        self.ratio = samples.ratio("given", "yours")

    @property
    def share(self) -> float:
        """The part of the points, from 0 to 1."""
        if self.ratio.median < NO_FASTER:
            return 0.0
        return min(1.0, math.log(self.ratio.median) / math.log(self.required))

    @property
    def word(self) -> str:
        if self.ratio.low >= self.required:
            return "passed"
        return "failed" if self.ratio.high < self.required else "undecided"


def _lap(
    function: Callable,
    against: Callable,
    on: Callable,
    device: str,
    required: float,
    seconds: float,
    said: list[str],
) -> _Lap:
    if found_wrong(function):
        raise AnswerError(
            "failed", "not timed, because a test above found the answer wrong. Mend that first."
        )
    seed = secrets.randbits(31)
    got = call(function, arguments(on, seed, device), said)
    if found := difference(got, against(*arguments(on, seed, device))):
        raise AnswerError("failed", f"not timed, because the answer is wrong: {found}")
    sides = {"given": against, "yours": function}
    samples = interleave(sides, on, device=device, seconds=seconds)
    lap = _Lap(samples, device, required, "")
    if lap.word == "undecided":
        lap = _Lap(interleave(sides, on, device=device, seconds=3 * seconds), device, required, "")
    if lap.word == "failed":
        cost = costs(function, *arguments(on, seed, device))
        lap.tip = (
            f"One call of yours asks torch for {counted(cost.operations.total(), 'operation')}, "
            f"{counted(cost.copies, 'copy', 'copies')} and {size(cost.bytes)} of new memory."
        )
    return lap


def _judge(laps: list[_Lap], points: float, said: list[str]) -> Outcome:
    words = [lap.word for lap in laps]
    word = next(word for word in ("failed", "undecided", "passed") if word in words)
    earned = points if word == "passed" else round(points * sum(lap.share for lap in laps) / len(laps), 2)
    summary = "; ".join(_sentence(lap) for lap in laps)
    details = [lap.tip for lap in laps if lap.tip]
    if word == "undecided":
        details.append(
            "Too close to call on this machine just now. Close other programs and run the cell again."
        )
    bars = [
        bar
        for lap in laps
        for prefix in [f"{lap.device}: " if len(laps) > 1 else ""]
        for given in [_median(lap.samples.seconds("given"))]
        for bar in (
            Bar(f"{prefix}given", given),
            Bar(f"{prefix}asked for", given / lap.required),
            Bar(f"{prefix}yours", _median(lap.samples.seconds("yours"))),
        )
    ]
    facts = {
        "laps": [
            {
                "device": lap.device,
                "clock": lap.samples.clock,
                "ratio": lap.ratio.median,
                "interval": [lap.ratio.low, lap.ratio.high],
                "required": lap.required,
                "pairs": len(lap.samples.seconds("yours")),
            }
            for lap in laps
        ]
    }
    return Outcome(word, earned, points, summary, [*details, *notes(said)], bars, facts)


def _sentence(lap: _Lap) -> str:
    low, high = times(lap.ratio.low), times(lap.ratio.high)
    clock = {"cpu": "CPU clock, one thread", "cuda": "CUDA events", "wall": "wall clock"}
    return (
        f"{times(lap.ratio.median)} as fast as given on {lap.device}, {times(lap.required)} asked for "
        f"({low} to {high}; {clock[lap.samples.clock]})."
    )


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
