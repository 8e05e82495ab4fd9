"""One page about a graded class: points, races, what an instructor should look at, time, the machine.

This module works out what the page shows; ``class_report.html.j2`` says how.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

import numpy as np
from markupsafe import Markup

from ..measuring.decide import FAR
from ..measuring.units import times
from ..show import GUESS, HERE, INK, RECORDED
from .course import Course
from .html_page import PALE, figure_of, picture_of, render
from .results import ClassResults, Lap, read_graded


@dataclass(frozen=True)
class Spread:
    """The points of one exercise: the most there are, the mean, how many have all, some, none."""

    exercise: str
    most: float
    mean: float
    counts: tuple[int, int, int]

    @property
    def shares(self) -> list[float]:
        """The counts as shares of the class."""
        return [count / max(1, sum(self.counts)) for count in self.counts]


def page(course: Course) -> str:
    """The whole page about an assignment, as HTML. Raises GradingError where nothing is graded."""
    return page_of(read_graded(course))


def page_of(results: ClassResults) -> str:
    """The page about results that were read."""
    points, most = [graded.points for graded in results.graded], sum(results.most.values())
    spreads = exercise_spreads(results)
    tests = [name for names in results.tests.values() for name in names]
    return render(
        Path(__file__).with_suffix(".html.j2"),
        results=results,
        facts=[
            (f"{len(points)} of {len(points) + len(results.missing)}", "submissions graded"),
            (f"{mean(points):.1f} of {most:g}", "points, mean"),
            (f"{median(points):.1f}", "points, median"),
            (f"{min(points):g} to {max(points):g}", "points, lowest and highest"),
        ],
        points=points_picture(points, most),
        exercises=exercises_picture(spreads),
        spreads=spreads,
        races=[race for race in (race_of(results, name) for name in tests) if race[1]],
        sentences=[self_check(results), sandbox_sentence(results)],
    )


def exercise_spreads(results: ClassResults) -> list[Spread]:
    """The points of each exercise that has tests."""
    found = []
    for exercise, names in results.tests.items():
        most, got = results.most_of(names), [graded.sum_of(names) for graded in results.graded]
        full, none = sum(points >= most - 1e-9 for points in got), sum(points <= 0 for points in got)
        found.append(Spread(exercise, most, mean(got), (full, len(got) - full - none, none)))
    return found


def race_of(results: ClassResults, name: str) -> tuple[str, list[tuple[str, Markup]], str]:
    """A race: its name, a sentence and a picture for each device, and how many were not timed."""
    tests = [test for graded in results.graded for test in graded.tests if test.name == name]
    devices: dict[str, list[Lap]] = {}
    for lap in (lap for test in tests for lap in test.laps):
        devices.setdefault(lap.device, []).append(lap)
    shown = []
    for device, laps in devices.items():
        required = laps[0].required
        reached = sum(lap.ratio >= required for lap in laps)
        text = (
            f"On {device}, {reached} of {len(laps)} timed answers measured {times(required)} (asked for) or "
            f"more; median {times(median(lap.ratio for lap in laps))}."
        )
        shown.append((text, race_picture(laps, f"{name}: {text}")))
    undecided = sum(test.outcome == "undecided" for test in tests)
    rest = f"{sum(not test.laps for test in tests)} answers were not timed"
    return name, shown, f"{rest}; {undecided} undecided." if undecided else f"{rest}."


def sandbox_sentence(results: ClassResults) -> str:
    """Whether the submissions ran inside the sandbox."""
    sandboxed = [on for graded in results.graded for on in graded.sandboxed]
    if not sandboxed:
        return "No submission says whether it ran in the sandbox."
    if all(sandboxed):
        return "All submissions ran inside the sandbox (bubblewrap)."
    return (
        f"{sandboxed.count(False)} of {len(sandboxed)} notebooks ran without the sandbox: students' code "
        "could reach this account's files and the network. Install bubblewrap and grade them again."
    )


def self_check(results: ClassResults) -> str:
    """What the same function against itself showed, before the machine judged others."""
    noise = [found for graded in results.graded for found in graded.noise]
    checks = {found["when"]: found for found in noise if "spread" in found and "when" in found}.values()
    if refused := [str(found["noisy"]) for found in noise if found.get("noisy")]:
        return f"The machine found itself too noisy to judge {len(refused)} times: {refused[-1]}"
    if not checks:
        return "The machine did not check itself, because no race was timed."
    worst = max(checks, key=lambda found: found["spread"] + abs(found["bias"]))
    low, high = (math.exp(worst["bias"] + sign * worst["spread"]) for sign in (-1, 1))
    often = "once" if len(checks) == 1 else f"{len(checks)} times"
    found = (
        f"The machine checked itself {often}: the same function against itself came out between "
        f"{low:.2f}× and {high:.2f}× at worst ({worst['when']})."
    )
    if uneven := [float(one["strays"]) for one in noise if one.get("signs_only")]:
        found += (
            f" In {len(uneven)} of {len(noise)} notebooks with races, launches were off by more than "
            f"{times(FAR)} so often (up to {100 * max(uneven):.0f} % of them) that only their signs counted."
        )
    return found


def points_picture(points: Sequence[float], most: float) -> Markup:
    """How many students have how many points."""
    figure, axes = figure_of(2.6)
    edges = np.linspace(0, most or 1, min(20, max(5, math.ceil(most))) + 1 if most else 2)
    counts, _, _ = axes.hist(np.clip(points, 0, edges[-1]), list(edges), rwidth=0.92, color=HERE)
    axes.axvline(middle := median(points), color=GUESS, lw=2, ls="--")
    axes.set_xlim(0, edges[-1])
    axes.set_title(f"dashed: median, {middle:.1f} points", fontsize=10, color=INK, loc="left")
    axes.set_xlabel("points")
    axes.set_ylabel("students")
    bars = zip(edges, edges[1:], counts, strict=False)
    text = "; ".join(f"{low:g} to {high:g} points: {count:g}" for low, high, count in bars if count)
    return picture_of(figure, f"Students by points. {text}. Median {middle:.1f}.")


def exercises_picture(spreads: Sequence[Spread]) -> Markup:
    """For each exercise the share of the class with all, some and no points."""
    figure, axes = figure_of(0.9 + 0.38 * len(spreads))
    left = np.zeros(len(spreads))
    for kind, (colour, ink) in enumerate([(HERE, "white"), (RECORDED, "black"), (PALE, "black")]):
        shares = np.array([100 * spread.shares[kind] for spread in spreads])
        bars = axes.barh(range(len(spreads)), shares, 0.7, left, color=colour)
        wide = [str(spread.counts[kind]) if spread.shares[kind] > 0.07 else "" for spread in spreads]
        axes.bar_label(bars, wide, label_type="center", color=ink, fontsize=9)
        left += shares
    axes.set_yticks(range(len(spreads)), [spread.exercise for spread in spreads])
    axes.set_ylim(len(spreads) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.set_title("blue: all points, orange: some, grey: none", fontsize=10, color=INK, loc="left")
    axes.set_xlabel("% of the class; the numbers count students")
    text = "; ".join("{}: {} all, {} some, {} none".format(one.exercise, *one.counts) for one in spreads)
    return picture_of(figure, f"Students with all, some and no points. {text}.")


def race_picture(laps: Sequence[Lap], text: str) -> Markup:
    """A histogram of the ratios on a logarithmic axis; one edge of its bars is the ratio asked for."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ratios, required = [lap.ratio for lap in laps], laps[0].required
    low, high = min(*ratios, required, 1), max(*ratios, required)
    step = max(math.log(high / low) / 18, math.log(1.15))
    below, above = (math.ceil(abs(math.log(end / required)) / step + 1e-9) for end in (low, high))
    figure, axes = figure_of(2.1)
    edges = required * np.exp(step * np.arange(-below, above + 2))
    for side, colour, hatch in ((edges[below:], HERE, None), (edges[: below + 1], RECORDED, "///")):
        of_side = [ratio for ratio in ratios if (ratio >= required) == (side[0] >= required)]
        axes.hist(of_side, list(side), rwidth=0.92, color=colour, hatch=hatch, edgecolor="white", lw=0)
    axes.axvline(required, color=INK, lw=2)
    axes.annotate(
        f"{times(required)} asked for", (required, 1), xycoords=("data", "axes fraction"),
        xytext=(0, 4), textcoords="offset points", ha="center", fontsize=10, color=INK,
    )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(low / math.exp(step), high * math.exp(step))
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if high / low > 100 else (1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: times(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("times as fast as the given version (logarithmic)")
    axes.set_ylabel("students")
    return picture_of(figure, text)
