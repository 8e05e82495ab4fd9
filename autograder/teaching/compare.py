"""compare: the one call of a chapter's timing cell. Measures, tells, draws, and remembers the verdict."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from statistics import median
from typing import Any

import torch
from msgspec.structs import replace

from ..judging.values import difference
from ..measuring import settings
from ..measuring.causes import Share, take_away, without
from ..measuring.clocks import Inputs, default_clock, devices
from ..measuring.device import device_name
from ..measuring.duel import SHARED, Ratio, Samples, Side, interleave
from ..measuring.gpus import KINDS, is_rocm, refused
from ..measuring.limits import limit
from ..measuring.prices import Prediction, predict
from ..measuring.units import as_time, times
from ..show import in_notebook, show, table_html, table_text
from . import recordings
from .chart import draw, in_words
from .claims import CLAIMS
from .evidence import Evidence, decides, holds, machines
from .guess import LATER, folded, judged, ratio_guessed
from .recordings import Timing
from .scripts import CAUSES_MIME, PRICES
from .verdicts import note


def compare(
    title: str,
    variants: Mapping[str, Callable],
    *,
    inputs: Inputs = lambda generator, device: device,
    guess: object = None,
    claim: str | None = None,
    differ: str | None = None,
    because: str | without | Sequence[str | without] = (),
    only: str | None = None,
    clock: str | None = None,
    threads: int | None = 1,
    seconds: float = 1.0,
    bytes: float = 0,
    flops: float = 0,
) -> "Comparison":
    """Time two or more callables against each other, on every device present, and show the result.

    ``variants`` maps names to callables; the first is the baseline, the last the one that is advised.
    ``inputs`` is the shape of random numbers from 0 to 1, which are drawn anew for every block; or
    ``inputs(generator, device)`` makes the arguments (a tuple, or one value). Without them, a variant is
    called with the device.
    ``guess`` is what the reader thinks: how many times faster the last variant is; or with "prices" as its
    cause, what most of the difference is for: "calls", "bytes" or "arithmetic". While it is ``...``, what was
    measured is folded in a notebook; what is no guess is left out. ``claim`` is the ID of the claim that this
    cell tests (see ``teaching.claims``). All variants must give equal results for equal inputs, to within
    rounding; ``differ`` says why they do not. ``because`` names what makes the difference between the first
    and the last, one cause or several (see ``measuring.causes``): each is taken away, in as many seconds
    more, and the card says how much of the difference went, or why that cannot be done. With "prices", the
    ratio is predicted from what both ask torch to do (see ``measuring.prices``). ``only`` names the one
    device that the comparison makes sense on; where it is missing, recordings are shown. ``clock`` is "cpu"
    (CPU seconds, the default there), "wall", or on a GPU "cuda" or "mps" (event seconds, the default there).
    ``threads`` is for torch's CPU operations, None for torch's own choice. ``seconds`` is the time to spend
    for each device. ``bytes`` and ``flops`` are what one call must at least move and compute: they add a line
    with the least time that the device could take (see ``measuring.limits``). Raises ValueError or TypeError
    for arguments that make no comparison.
    """
    if len(variants) < 2:
        raise ValueError("compare needs two callables or more: the baseline first, the advised one last.")
    for name, function in variants.items():
        if not callable(function):
            raise TypeError(f"{name!r} must be a function to call, not {type(function).__name__}.")
    if not callable(inputs) and not isinstance(inputs, (int, tuple)):
        raise TypeError("inputs must be a shape, or a function (generator, device) -> arguments.")
    # It refuses what can decide nothing.
    asked = Evidence(claim, title, "timing") if claim else None
    causes = [because] if isinstance(because, (str, without)) else because
    samples: dict[str, Samples] = {}
    timings: list[Timing] = []
    shares: list[Share | Prediction] = []
    remarks: list[str] = []
    lacks: list[str] = []
    sides = {name: Side(function, inputs) for name, function in variants.items()}
    recorded = recordings.recordings_of(title, variants)
    first, *_, last = variants
    ends = {first: sides[first], last: sides[last]}
    for device in (device for device in devices() if only in (None, device)):
        how: dict[str, Any] = {"device": device, "clock": clock or default_clock(device), "seconds": seconds}
        try:
            if differ is None and (unequal := _difference(sides, device)):
                raise ValueError(f"{title}: {unequal} Where that is meant, say why with differ=….")
            samples[device] = interleave(sides, num_threads=threads, **how)
        except (TypeError, RuntimeError) as error:
            if not (lack := refused(device, error)):
                raise
            lacks.append(f"Not measured on {KINDS[device]}: {lack}.")
            continue
        used = threads or torch.get_num_threads()
        least = limit(bytes, flops, device=device, num_threads=used) if bytes or flops else None
        taken = {name: samples[device].seconds(name) for name in variants}
        timings.append(Timing("here", device_name(device), taken, least))
        gain = timings[-1].gain
        if samples[device].shared:
            remarks.append(f"On {device}, {SHARED} Its turns are in these figures, so they decide nothing.")
        elif asked and decides(asked.claim, device, rocm=is_rocm()):
            held = holds(asked.claim, gain)
            found = replace(asked, holds=held, device=device, on=device, ratio=gain, processes=1)
            note(found)
            remarks.append(_remark(found, gain))
        if not settings.longest(device) > 0:  # blocks of one call are no figures, and have no causes
            continue
        if not samples[device].shared:
            remarks += _outside(gain, device, recorded)
        same = partial(_difference, device=device) if differ is None else lambda sides: None
        for cause in causes:
            try:
                if cause == PRICES:
                    shares.append(predict(ends, device, used, gain))
                else:
                    shares.append(take_away(cause, ends, same, num_threads=used, **how))
                remarks.append(str(shares[-1]))
            except Exception as error:  # of ours or of the pair; the comparison stands
                name = cause if isinstance(cause, str) else cause.cause
                said = str(error).partition("\n")[0]
                how_known = "Predicted from" if name == PRICES else "Without"
                remarks.append(f"{how_known} {name}, on {device}: not measured. {said}")
    if "mps" in samples and not recordings.is_recorded_on("mps"):
        lacks.append("This course's way to measure Apple's GPU was not tried on a Mac yet.")
    taken_away = (one for one in shares if isinstance(one, Share))
    timings += [Timing("here", device_name(one.device), one.seconds) for one in taken_away]
    timings += recorded
    comparison = Comparison(title, samples, timings, shares)
    if not timings:
        sentence = f"{title}: this needs a {only} device. There is none here, and no recording yet."
        show(sentence, f"<p>{sentence}</p>")
        return comparison
    _tell(comparison, guess, [*remarks, *lacks])
    _record(comparison, claim)
    return comparison


@dataclass(frozen=True)
class Comparison:
    """What ``compare`` measured here, ``samples`` by device and ``shares`` of causes, and all ``timings``."""

    title: str
    samples: dict[str, Samples]
    timings: list[Timing]
    shares: list[Share | Prediction]

    def ratio(self, device: str = "cpu") -> Ratio:
        """How many times faster the last variant is than the first, on a device of this machine.

        Raises KeyError for a device that was not measured.
        """
        first, *_, last = self.samples[device].blocks
        return self.samples[device].ratio(first, last)

    def _ipython_display_(self) -> None:
        """Nothing more: ``compare`` has shown it already."""


def _difference(sides: Mapping[str, Side], device: str) -> str | None:
    """Which side's result is another than the first one's."""
    results = {name: side.call(1, device) for name, side in sides.items()}
    first, *others = results
    for name in others:
        if found := difference(results[name], results[first]):
            return f"{name!r} does not give what {first!r} gives: {found}"
    return None


def _tell(comparison: Comparison, guess: object, remarks: Sequence[str]) -> None:
    title, timings = comparison.title, comparison.timings
    header = ("device", "variant", "median time", "times faster", "95 % interval")
    rows = [row for timing in timings for row in _rows(timing)]
    ratio, said = ratio_guessed(guess)
    if ratio:
        measured = timings[0].gain.median
        said = f"You said {times(ratio)}, it was {times(measured)}: {judged(title, ratio, measured)}"
    predicted = next((one for one in comparison.shares if isinstance(one, Prediction)), None)
    if predicted and isinstance(guess, str):
        first, last = predicted.bills.values()
        most = max(first, key=lambda of: abs(first[of] - last[of]))
        said = f"You said {guess}, it is mostly {most}: {judged(title, guess, most)}"
    headline = _headline(timings[0])
    text = "\n".join([title, headline, table_text(header, rows), *filter(None, [said]), *remarks])
    html = f"<p><b>{escape(headline)}</b> {escape(said)}</p>"
    if in_notebook():
        html += draw(timings, ratio)
    html += "".join(f"<p>{escape(remark)}</p>" for remark in remarks)
    html += folded("All times", table_html(header, rows, title))
    summary = f"{title}: measured on {timings[0].device}. {LATER}"
    kept = {CAUSES_MIME: list(map(_kept, comparison.shares))} if comparison.shares else {}
    show(text, folded(summary, html) if guess is ... else html, kept)


def _kept(one: Share | Prediction) -> dict[str, object]:
    """What the list of all reasons says of a cause; no share where there is no difference."""
    share = None if isinstance(one, Share) and one.word == "no difference" else one.share
    return {"cause": one.cause, "device": one.device, "share": share and round(share, 3)}


def _rows(timing: Timing) -> Iterator[tuple[str, ...]]:
    """The rows of one device in the table; the first of them names it."""
    where = f"{timing.origin}: {timing.device}"
    for name, seconds in timing.seconds.items():
        faster, interval = "1 (baseline)", ""
        if ratio := timing.ratios.get(name):
            faster, interval = times(ratio.median), f"{times(ratio.low)} to {times(ratio.high)}"
            if 1 < (number := len(timing.processes)) < 6:  # each one figure, and the interval their range
                interval += f" ({100 - 200 * 0.5**number:.0f} %)"
        yield where, name, as_time(median(seconds)), faster, interval
        where = ""
    if timing.limit and timing.at_the_limit:
        yield where, "limit", as_time(timing.limit), times(timing.at_the_limit), ""


def _headline(timing: Timing) -> str:
    first, *_, last = timing.seconds
    where = "" if timing.origin == "here" else f" (recorded on {timing.device.partition(',')[0]})"
    if (found := in_words(timing.gain)).startswith("no "):
        return f"{last} and {first}: {found}{where}."
    return f"{last} is {found} than {first}{where}."


def _remark(found: Evidence, ratio: Ratio) -> str:
    """What a comparison says about a claim."""
    here = f"{times(ratio.median)} here, on {found.device}"
    if found.is_price:
        return f"Claim {found.claim}: {here}, is its price."
    side = f", {found.side_in_words}" if found.side else ""
    least = f"{times(CLAIMS[found.claim].at_least)} or more, with the whole interval, would hold"
    return f"Claim {found.claim}{side}: {here}; it {found.word} ({least})."


def _outside(gain: Ratio, kind: str, recorded: Sequence[Timing]) -> Iterator[str]:
    """A sentence where the whole interval lies outside of all that was recorded on this kind of device."""
    there = {one.facts["name"]: one for one in recorded if one.facts["kind"] == kind}
    least = min((one.gain.low for one in there.values()), default=0.0)
    most = max((one.gain.high for one in there.values()), default=math.inf)
    if gain.high < least or gain.low > most:
        on = machines(kind, {name: len(one.processes) for name, one in there.items()})
        yield f"Outside what was recorded: {times(least)} to {times(most)} {on}."


def _record(comparison: Comparison, claim: str | None) -> None:
    """Keep what was measured: where `make record` wants it; else, for a claim, where the claims page looks
    for this machine's own figures. Blocks of one call are no figures.
    """
    folder = settings.records() or (recordings.kept_here() if claim and in_notebook() else None)
    for (device, taken), timing in zip(comparison.samples.items(), comparison.timings, strict=False):
        if folder and settings.longest(device) > 0:
            recordings.add_recording(folder, device, comparison.title, timing, taken.clock, claim)
