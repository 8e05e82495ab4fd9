"""compare: the one call of a chapter's timing cell. Measures, tells, draws, and remembers the verdict."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import median

import torch

from ..judging.values import difference
from ..measuring.clocks import default_clock, devices
from ..measuring.duel import Ratio, Samples, fresh_inputs, interleave, longest, ratio_of
from ..measuring.gpus import is_rocm, refused
from ..measuring.limits import limit
from ..measuring.units import rounded, times
from ..measuring.units import seconds as as_time
from ..show import in_notebook, picture_html, show, table_html, table_text
from . import recordings
from .claims import CLAIMS, WORTH_IT
from .comparison import Comparison, Line
from .evidence import Evidence, decides, holds
from .guess import LATER, folded, ratio_guessed
from .verdicts import note


def compare(
    title: str,
    variants: Mapping[str, Callable],
    *,
    inputs: Callable,
    guess: object = None,
    claim: str | None = None,
    when: str | None = None,
    unless: str | None = None,
    differ: str | None = None,
    only: str | None = None,
    clock: str | None = None,
    threads: int | None = 1,
    seconds: float = 1.0,
    bytes: float = 0,
    flops: float = 0,
) -> Comparison:
    """Time two or more callables against each other, on every device present, and show the result.

    ``variants`` maps names to callables; the first is the baseline, the last the one that is advised.
    ``inputs(generator, device)`` makes their arguments (a tuple, or one value), anew for every block.
    ``guess`` is what the reader thinks: how many times faster the last variant is. While it is ``...``, what
    was measured is folded in a notebook; what is no number above 0 is left out. ``claim`` is the ID of the
    claim that this cell tests (see ``teaching.claims``), ``when`` the condition that it stands for, if the
    claim has one, or ``unless`` the one that it lacks. All variants must give equal results for equal inputs,
    to within rounding; ``differ`` says why they do not. ``only`` names the one device that the comparison
    makes sense on; where it is missing, recordings are shown. ``clock`` is "cpu" (CPU seconds, the default
    there), "wall", or on a GPU "cuda" or "mps" (event seconds, the default there).
    ``threads`` is for torch's CPU operations, None for torch's own choice. ``seconds`` is the time to spend
    for each device. ``bytes`` and ``flops`` are what one call must at least move and compute: they add a line
    with the least time that the device could take (see ``measuring.limits``). Raises ValueError or TypeError
    for arguments that make no comparison.
    """
    _refuse_nonsense(variants, inputs)
    if claim:
        Evidence(claim, title, "timing", when=when, unless=unless)  # refuses what can decide nothing
    samples: dict[str, Samples] = {}
    remarks: list[str] = []
    for device in devices():
        if only not in (None, device):
            continue
        try:
            if differ is None:
                _require_equal_results(title, variants, inputs, device)
            samples[device] = interleave(
                variants,
                inputs,
                device=device,
                clock=clock or default_clock(device),
                seconds=seconds,
                num_threads=threads,
            )
        except (TypeError, NotImplementedError) as error:
            if not (lack := refused(device, error)):
                raise
            remarks.append(f"Not measured on Apple's GPU: {lack}.")
    if "mps" in samples and not recordings.is_recorded_on("mps"):
        remarks.append("This course's way to measure Apple's GPU was not tried on a Mac yet.")
    limits = {
        device: limit(bytes, flops, device=device, num_threads=threads or torch.get_num_threads())
        for device in samples
        if bytes or flops
    }
    lines = [line for device in samples for line in _measured(device, samples[device], limits.get(device))]
    for recording in recordings.recordings_of(title, variants):
        lines += _recorded(recording, variants)
    comparison = Comparison(title, samples, lines)
    if not lines:
        sentence = f"{title}: this needs a {only} device. There is none here, and no recording yet."
        show(sentence, f"<p>{sentence}</p>")
        return comparison
    findings = _findings(comparison, claim, when, unless)
    _tell(comparison, guess, [*map(_remark, findings), *remarks])
    _record(comparison, claim, limits)
    return comparison


def _refuse_nonsense(variants: Mapping[str, Callable], inputs: Callable) -> None:
    if len(variants) < 2:
        raise ValueError("compare needs two callables or more: the baseline first, the advised one last.")
    for name, function in variants.items():
        if not callable(function):
            raise TypeError(f"{name!r} must be a function to call, not {type(function).__name__}.")
    if not callable(inputs):
        raise TypeError("inputs must be a function (generator, device) -> arguments.")


def _require_equal_results(
    title: str, variants: Mapping[str, Callable], inputs: Callable, device: str
) -> None:
    (first, wanted), *others = (
        (name, function(*fresh_inputs(inputs, 1, device))) for name, function in variants.items()
    )
    for name, got in others:
        if found := difference(got, wanted):
            raise ValueError(
                f"{title}: {name!r} does not give what {first!r} gives: {found}. Where that is meant, "
                "say why with differ=…."
            )


def _measured(device: str, samples: Samples, least: float | None) -> list[Line]:
    seconds = {name: samples.seconds(name) for name in samples.blocks}
    return _lines(f"here: {recordings.device_name(device)}", seconds, least, recorded=False)


def _recorded(recording: recordings.Recording, variants: Mapping[str, Callable]) -> list[Line]:
    seconds = {name: recording.seconds[name] for name in variants}
    return _lines(f"recorded: {recording.label}", seconds, recording.limit, recorded=True)


def _lines(where: str, seconds: dict[str, list[float]], least: float | None, *, recorded: bool) -> list[Line]:
    first = next(iter(seconds))
    lines = [
        Line(
            where, name, median(values), ratio_of(seconds[first], values) if name != first else None, recorded
        )
        for name, values in seconds.items()
    ]
    if least:
        ratio = median(seconds[first]) / least
        lines.append(Line(where, "limit", least, Ratio(ratio, ratio, ratio), recorded, is_limit=True))
    return lines


def _tell(comparison: Comparison, guess: object, remarks: Sequence[str]) -> None:
    header = ("device", "variant", "median time", "times faster", "95 % interval")
    rows = [
        (
            line.device if number == 0 or comparison.lines[number - 1].device != line.device else "",
            line.variant,
            as_time(line.median),
            times(line.ratio.median) if line.ratio else "1 (baseline)",
            f"{times(line.ratio.low)} to {times(line.ratio.high)}"
            if line.ratio and not line.is_limit
            else "",
        )
        for number, line in enumerate(comparison.lines)
    ]
    ratio, problem = ratio_guessed(guess)
    said = problem or ("No guess yet." if guess is ... else "")
    remarks = [*_on_guess(comparison, ratio), *([said] if said else []), *remarks]
    text = "\n".join([comparison.title, table_text(header, rows), *remarks])
    html = table_html(header, rows, comparison.title) + "".join(
        f"<p>{escape(remark)}</p>" for remark in remarks
    )
    if in_notebook():
        html += _chart(comparison, ratio)
    summary = f"{comparison.title}: measured on {comparison.lines[0].device.partition(': ')[2]}. {LATER}"
    show(text, folded(summary, html) if guess is ... else html)


def _chart(comparison: Comparison, guess: float | None) -> str:
    from .chart import draw

    alternative = "; ".join(
        f"{line.device}: {line.variant} {times(line.ratio.median)}"
        for line in comparison.lines
        if line.ratio and not line.is_limit
    )
    baseline = comparison.lines[0].variant
    return picture_html(
        draw(comparison.lines, baseline, guess),
        f"Chart: times faster than {baseline}. {alternative}."
        + (f" Your guess: {times(guess)}." if guess else ""),
    )


def _on_guess(comparison: Comparison, guess: float | None) -> list[str]:
    if guess is None:
        return []
    where = comparison.lines[0].device
    measured = [
        line.ratio.median
        for line in comparison.lines
        if line.device == where and line.ratio and not line.is_limit
    ][-1]
    off = max(guess / measured, measured / guess)
    closeness = "A good guess." if off < 1.5 else f"Off by a factor of {rounded(off)}."
    if off < 1.5 and _next_to_none(measured) and not _next_to_none(guess):
        closeness = "You expected a difference; there is next to none."
    return [f"Your guess: {times(guess)}. Measured: {times(measured)}. {closeness}"]


def _next_to_none(ratio: float) -> bool:
    return 1 / WORTH_IT < ratio < WORTH_IT


def _findings(
    comparison: Comparison, claim: str | None, when: str | None, unless: str | None
) -> list[Evidence]:
    """What the comparison says about a claim, on each device of this machine that can decide it."""
    if not claim:
        return []
    found = []
    for device in comparison.samples:
        if decides(claim, device, rocm=is_rocm()):
            ratio = comparison.ratio(device)
            found.append(
                Evidence(
                    claim,
                    comparison.title,
                    "timing",
                    holds(claim, ratio),
                    when,
                    unless,
                    device=device,
                    on=device,
                    ratio=ratio,
                )
            )
            note(found[-1])
    return found


def _remark(found: Evidence) -> str:
    assert found.ratio  # it was measured
    if found.is_price:
        return f"Claim {found.claim}: {times(found.ratio.median)} here, on {found.device}, is its price."
    side = f", when {found.when}" if found.when else f", not when {found.unless}" if found.unless else ""
    return (
        f"Claim {found.claim}{side}: {times(found.ratio.median)} here, on {found.device}; it {_says(found)}."
    )


def _says(found: Evidence) -> str:
    least = CLAIMS[found.claim].at_least
    return f"{found.word} ({times(least)} or more, with the whole interval, would hold)"


def _record(comparison: Comparison, claim: str | None, limits: Mapping[str, float]) -> None:
    """Keep what was measured: where ``AUTOGRADER_RECORD`` (``make record``) says; else, for a claim,
    where the claims page looks for this machine's own figures. Blocks of one call are no figures.
    """
    folder = os.environ.get("AUTOGRADER_RECORD")
    if not folder and not (claim and in_notebook()):
        return
    for device, samples in comparison.samples.items():
        if longest(device) == 0:
            continue
        recordings.add_recording(
            Path(folder) if folder else recordings.kept_here(),
            device,
            comparison.title,
            {name: samples.seconds(name) for name in samples.blocks},
            clock=samples.clock,
            claim=claim,
            limit=limits.get(device),
        )
