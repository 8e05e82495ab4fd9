"""The chart under a comparison: times faster than the baseline, by device, with the reader's guess."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import cycle

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ..measuring.units import times
from .comparison import Line

# Okabe and Ito's palette: distinguishable with every common kind of colour blindness.
HERE, RECORDED, GUESS, LIMIT, INK = "#0072B2", "#E69F00", "#CC79A7", "#009E73", "#333333"


def draw(lines: Sequence[Line], baseline: str, guess: float | None) -> Figure:
    """Draw the ratio of every line that has one, on a logarithmic axis."""
    limits = {line.device: line.ratio.median for line in lines if line.ratio and line.is_limit}
    bars = [(line, line.ratio) for line in lines if line.ratio and not line.is_limit]
    figure = Figure(figsize=(7.5, 1.3 + 0.42 * len(bars) + (0.25 if guess else 0)), dpi=110)
    axes = figure.add_subplot()
    figure.set_layout_engine("constrained")
    for y, (line, ratio) in enumerate(bars):
        colour = RECORDED if line.recorded else HERE
        left, right = sorted((1.0, ratio.median))
        axes.barh(y, right - left, left=left, height=0.56, color=colour, alpha=0.85, zorder=2)
        axes.plot([ratio.low, ratio.high], [y, y], color=INK, lw=1.6, zorder=3)
        if line.device in limits:
            axes.plot([limits[line.device]] * 2, [y - 0.42, y + 0.42], color=LIMIT, lw=3, zorder=5)
        axes.annotate(
            times(ratio.median),
            (max(ratio.high, 1), y),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            weight="bold",
            color=INK,
            zorder=6,
        )
    if guess:
        axes.axvline(guess, color=GUESS, lw=2, ls=(0, (4, 2)), zorder=4)
        axes.plot([guess], [-0.75], marker="v", ms=9, color=GUESS, clip_on=False, zorder=5)
        axes.annotate(
            f"your guess {times(guess)}",
            (guess, -0.75),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            color="#9C3F74",
            weight="bold",
        )
    axes.axvline(1, color=INK, lw=1, zorder=4)
    reach = [1.0, *limits.values(), *([guess] if guess else [])] + [
        bound for _, ratio in bars for bound in (ratio.low, ratio.high)
    ]
    axes.set_xscale("log")
    axes.set_xlim(min(reach) / 1.4, max(max(reach) * 2.2, 2))
    axes.set_ylim(len(bars) - 0.45, -1.05 if guess else -0.55)
    axes.set_yticks(range(len(bars)), [_label(line) for line, _ in bars], fontsize=8.5)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(reach) / min(reach) < 200 else (1,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: times(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    legend = "black line: 95 % interval" + ("; green bar: limit of the machine" if limits else "")
    axes.set_xlabel(f"times faster than “{baseline}” (logarithmic)\n{legend}", fontsize=8.5)
    axes.grid(axis="x", color="#DDDDDD", zorder=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure


def draw_scores(dots: Mapping[str, Sequence[tuple[str, float]]], devices: Sequence[str]) -> Figure:
    """Draw the ratios of each claim's comparisons, a row a claim and a colour a device."""
    figure = Figure(figsize=(7.5, 1.4 + 0.24 * len(dots)), dpi=110)
    axes = figure.add_subplot()
    figure.set_layout_engine("constrained")
    others = [device for device in devices if device != "here"]
    colours = dict(zip(others, cycle((RECORDED, LIMIT, GUESS, "#56B4E9")), strict=False)) | {"here": HERE}
    for device in devices:
        points = [
            (ratio, y) for y, row in enumerate(dots.values()) for where, ratio in row if where == device
        ]
        name = "this machine" if device == "here" else f"recorded: {device.replace('(R)', '')}"
        axes.scatter(
            [ratio for ratio, _ in points],
            [y for _, y in points],
            s=34,
            color=colours[device],
            edgecolor=INK,
            linewidth=0.6,
            marker="o" if device == "here" else "D",
            label=name,
            zorder=3,
        )
    for y, row in enumerate(dots.values()):
        low, high = (choose(ratio for _, ratio in row) for choose in (min, max))
        axes.plot([low, high], [y, y], color="#BBBBBB", lw=1.2, zorder=2)
    axes.axvline(1, color=INK, lw=1.2)
    axes.set_xscale("log")
    axes.set_ylim(len(dots) - 0.4, -0.6)
    axes.set_yticks(range(len(dots)), list(dots), fontsize=8.5)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: times(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("times faster with the advice (logarithmic); left of the line: slower", fontsize=8.5)
    axes.grid(axis="x", color="#DDDDDD", zorder=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper left", ncols=2, fontsize=8, frameon=False)
    return figure


def _label(line: Line) -> str:
    where, _, device = line.device.partition(": ")
    short = textwrap.shorten(device.split(", ")[0].replace("(R)", ""), 34, placeholder="…")
    return f"{line.variant}\n{where}: {short}"
