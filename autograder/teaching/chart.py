"""The chart under a comparison: times faster than the baseline, by device, with the reader's guess."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from itertools import cycle
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from ..measuring.units import times
from ..show import GUESS, HERE, INK, LIMIT, RECORDED
from .evidence import Evidence
from .recordings import Timing

# Of bold text beside a place.
BESIDE: dict[str, Any] = {"textcoords": "offset points", "va": "center", "weight": "bold"}


def draw(timings: Sequence[Timing], guess: float | None) -> Figure:
    """Draw how many times faster than the baseline each other variant was, on a logarithmic axis."""
    bars = [(timing, name, ratio) for timing in timings for name, ratio in timing.ratios.items()]
    figure, axes = empty(1.3 + 0.42 * len(bars) + (0.25 if guess else 0))
    reach, legend = [1.0], "black line: 95 % interval"
    for y, (timing, _, ratio) in enumerate(bars):
        colour = {"here": HERE, "recorded": RECORDED}[timing.origin]
        left, right = sorted((1.0, ratio.median))
        axes.barh(y, right - left, left=left, height=0.56, color=colour, alpha=0.85, zorder=2)
        axes.plot([ratio.low, ratio.high], [y, y], color=INK, lw=1.6, zorder=3)
        reach += [ratio.low, ratio.high]
        if limit := timing.at_the_limit:
            axes.plot([limit] * 2, [y - 0.42, y + 0.42], color=LIMIT, lw=3, zorder=5)
            reach.append(limit)
            legend = "black line: 95 % interval; green bar: limit of the machine"
        axes.annotate(times(ratio.median), (max(ratio.high, 1), y), (6, 0), color=INK, zorder=6, **BESIDE)
    if guess:
        mark_guess(axes, guess, -0.75)
        reach.append(guess)
    axes.set(xlim=(min(reach) / 1.4, max(max(reach) * 2.2, 2)))
    axes.set_ylim(len(bars) - 0.45, -1.05 if guess else -0.55)
    baseline = next(iter(timings[0].seconds))
    rows = [f"{name}\n{_short(timing)}" for timing, name, _ in bars]
    finish(axes, rows, f"times faster than “{baseline}” (logarithmic)\n{legend}", reach)
    return figure


def draw_scores(found: Mapping[str, Sequence[Evidence]]) -> Figure:
    """Draw the ratios of each claim's comparisons, a row a claim and a colour a device."""
    figure, axes = empty(1.4 + 0.24 * len(found))
    points: dict[str | None, list[tuple[float, int]]] = {}
    for y, row in enumerate(found.values()):
        ratios = [one.ratio.median for one in row if one.ratio]
        axes.plot([min(ratios), max(ratios)], [y, y], color="#BBBBBB", lw=1.2, zorder=2)
        for one, ratio in zip(row, ratios, strict=True):
            points.setdefault(None if one.here else one.device, []).append((ratio, y))
    colours = cycle((RECORDED, LIMIT, GUESS, "#56B4E9"))
    for device in sorted(points, key=lambda device: device is None):
        label = f"recorded: {device.replace('(R)', '')}" if device else "this machine"
        style: dict[str, Any] = {"color": next(colours) if device else HERE, "marker": "D" if device else "o"}
        xs, ys = zip(*points[device], strict=True)
        axes.scatter(xs, ys, s=34, edgecolor=INK, linewidth=0.6, label=label, zorder=5, **style)
    axes.set(ylim=(len(found) - 0.4, -0.6))
    ratios = [ratio for places in points.values() for ratio, _ in places]
    finish(axes, found, "times faster with the advice (logarithmic); left of the line: slower", ratios)
    figure.legend(loc="outside upper left", ncols=2, fontsize=8, frameon=False)
    return figure


def mark_guess(axes: Axes, guess: float, y: float) -> None:
    """Draw the reader's guess, with its name at a height above the rows."""
    axes.axvline(guess, color=GUESS, lw=2, ls=(0, (4, 2)), zorder=4)
    axes.plot([guess], [y], marker="v", ms=9, color=GUESS, clip_on=False, zorder=5)
    axes.annotate(f"your guess {times(guess)}", (guess, y), (8, 0), color="#9C3F74", zorder=6, **BESIDE)


def empty(height: float) -> tuple[Figure, Axes]:
    """A figure of this height in inches, with one pair of axes."""
    figure = Figure(figsize=(7.5, height), dpi=110, layout="constrained")
    return figure, figure.add_subplot()


def finish(axes: Axes, rows: Collection[str], title: str, ratios: Collection[float]) -> None:
    """Name the rows and the axis, which these ratios are on, and take away what says nothing."""
    axes.axvline(1, color=INK, lw=1, zorder=4)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(ratios) / min(ratios) < 200 else (1,)))
    axes.set_yticks(range(len(rows)), list(rows), fontsize=8.5)
    axes.xaxis.set_major_formatter(lambda value, _: times(value))
    axes.xaxis.set_minor_formatter("")
    axes.set_xlabel(title, fontsize=8.5)
    axes.grid(axis="x", color="#DDDDDD", zorder=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _short(timing: Timing) -> str:
    short = textwrap.shorten(timing.device.split(", ")[0].replace("(R)", ""), 34, placeholder="…")
    return f"{timing.origin}: {short}"
