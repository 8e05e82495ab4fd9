"""What the page about a graded class shows; ``class_report.html.j2`` says how."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, mode

import numpy as np

from ..measuring.decide import FAR
from ..measuring.units import times
from ..show import visible
from .html_page import render
from .results import ClassResults, Lap, Verdict

Bar = tuple[str, int, bool]  # from what to what, how many are there, and whether that is what was asked for


@dataclass(frozen=True)
class Spread:
    """The points of one exercise: the most there are, the mean, how many have all, some, none."""

    exercise: str
    most: float
    mean: float
    counts: tuple[int, int, int]
    shares: list[float]  # of the class


def page(results: ClassResults) -> str:
    """The whole page about an assignment, as HTML."""
    points, most = [graded.points for graded in results.graded], sum(results.most.values())
    edges = np.linspace(0, most or 1, min(10, max(5, math.ceil(most))) + 1)
    counts, _ = np.histogram(np.clip(points, 0, edges[-1]), edges)
    steps = zip(edges, edges[1:], counts, strict=False)
    tests: dict[str, list[Verdict]] = {name: [] for names in results.tests.values() for name in names}
    for test in (test for graded in results.graded for test in graded.tests):
        tests.setdefault(test.name, []).append(test)
    return render(
        Path(__file__).with_suffix(".html.j2"),
        results=results,
        points=[(f"{low:g} to {high:g}", int(count), True) for low, high, count in steps],
        spreads=exercise_spreads(results),
        losses=losses(results),
        races={name: found for name, found in tests.items() if any(test.laps for test in found)},
        race_bars=race_bars,
        sentences=machine(results),
    )


def exercise_spreads(results: ClassResults) -> list[Spread]:
    found = []
    for exercise, names in results.tests.items():
        most, got = results.most_of(names), [graded.sum_of(names) for graded in results.graded]
        full, none = sum(points >= most - 1e-9 for points in got), sum(points <= 0 for points in got)
        counts = (full, len(got) - full - none, none)
        found.append(Spread(exercise, most, mean(got), counts, [count / len(got) for count in counts]))
    return found


def losses(results: ClassResults) -> list[tuple[str, float, int, int, str]]:
    """The tests that cost points, those that cost most first: points, students, how many of these were told
    about the same, and what, without its figures.
    """
    found = []
    for name, most in results.most.items():
        tests = (test for graded in results.graded for test in graded.tests if test.name == name)
        if short := [test for test in tests if test.points < most]:
            lost = round(sum(most - test.points for test in short), 2)
            told = [re.sub(r"\d[\d.,]*", "…", f"{test.outcome}: {test.message}") for test in short]
            found.append((name, lost, len(short), told.count(mode(told)), visible(mode(told))))
    return sorted(found, key=lambda one: -one[1])


def machine(results: ClassResults) -> list[str]:
    """Sentences about the machine: the sandbox, and what the same function against itself showed."""
    noise = [found for graded in results.graded for found in graded.noise]
    checks = {found["when"]: found for found in noise if "spread" in found and "when" in found}.values()
    return render(
        Path(__file__).with_name("machine.txt.j2"),
        sandboxed=[on for graded in results.graded for on in graded.sandboxed],
        noise=noise,
        checks=len(checks),
        worst=max(checks, key=lambda found: found["spread"] + abs(found["bias"]), default=None),
        far=FAR,
    ).splitlines()


def race_bars(laps: Sequence[Lap]) -> list[Bar]:
    """How many answers measured what, in equal steps of the logarithm; one begins at the ratio asked for."""
    ratios, required = [lap.ratio for lap in laps], laps[0].required
    step = max(math.log(max(*ratios, required) / min(*ratios, required)) / 9, math.log(1.15))
    counts = Counter(math.floor(math.log(ratio / required) / step) for ratio in ratios)
    end = lambda place: times(required * math.exp(step * place))
    places = range(min(0, *counts), max(0, *counts) + 1)
    return [(f"{end(place)} to {end(place + 1)}", counts[place], place >= 0) for place in places]
