"""One page about a graded class: points, races, what an instructor should look at, time, the machine.

This module works out what the page shows; ``report.html.j2`` says how.
"""

from __future__ import annotations

import argparse
import base64
import io
import math
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from sqlalchemy.exc import SAWarning

from ..files import write_whole
from ..measuring.decide import FAR
from ..measuring.units import times
from ..show import GUESS, HERE, INK, RECORDED, table_html
from .course import Course, GradingError
from .progress_bar import length
from .results import ClassResults, GradedTest, Lap, read_results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALE = "#D9D9D9"


@dataclass(frozen=True)
class Picture:
    """An image as an address that holds it whole, with its facts as alternative text."""

    alternative: str
    source: str


@dataclass(frozen=True)
class Listing:
    """Cases that an instructor should look at, or a sentence that there are none."""

    title: str
    heads: list[str]
    rows: list[list[str]]
    nothing: str
    remark: str = ""


@dataclass(frozen=True)
class OnDevice:
    """The ratios that the class reached in one race on one device."""

    text: str
    picture: Picture


@dataclass(frozen=True)
class RaceSection:
    """One race: what was measured on each device, and how many were not timed."""

    name: str
    devices: list[OnDevice]
    rest: str


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


def render(template: str, **values: object) -> str:
    """A page as HTML, with nothing to load from elsewhere."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(ink=INK, pale=PALE, table=_table, **values)


def page(results: ClassResults) -> str:
    """The whole page about an assignment, as HTML."""
    points = [graded.points for graded in results.graded]
    spreads = exercise_spreads(results)
    tests = [name for exercise in results.exercises for name in results.tests_of(exercise)]
    return render(
        "report.html.j2",
        assignment=results.assignment,
        facts=facts(results),
        points=points_picture(points, sum(results.most.values())),
        listings=listings(results),
        exercises=exercises_picture(spreads),
        numbers=[
            [spread.exercise, f"{spread.mean:.2f} of {spread.most:g}", *map(str, spread.counts)]
            for spread in spreads
        ],
        races=[section for name in tests if (section := race_section(results, name))],
        times=time_rows(results),
        sentences=[*last_run(results), self_check(results), sandbox_sentence(results)],
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], numeric: Collection[int] = ()) -> Markup:
    return Markup(table_html(heads, rows, numeric=numeric))


def facts(results: ClassResults) -> list[tuple[str, str]]:
    """How many, and how well."""
    points = [graded.points for graded in results.graded]
    return [
        (f"{len(points)} of {len(points) + len(results.missing)}", "submissions graded"),
        (f"{mean(points):.1f} of {sum(results.most.values()):g}", "points, mean"),
        (f"{median(points):.1f}", "points, median"),
        (f"{min(points):g} to {max(points):g}", "points, lowest and highest"),
    ]


def listings(results: ClassResults) -> list[Listing]:
    """What the instructor should look at, and what somebody decided; some of it only where there is any."""
    undecided = [
        [graded.student, test.name, test.message]
        for graded in results.graded
        for test in graded.tests
        if test.outcome == "undecided"
    ]
    suspicious = [
        [graded.student, str(event.get("cell") or "the notebook"), str(event.get("what", ""))]
        for graded in results.graded
        for event in graded.events
    ]
    return [
        Listing(
            "Not graded, or to be graded again",
            ["Student", "Why"],
            [[student, why] for student, why in results.to_grade().items()],
            "Everybody who handed in is graded.",
        ),
        Listing(
            "Could not be read",
            ["Student", "Why"],
            [[graded.student, why] for graded in results.graded for why in graded.unreadable],
            "Every notebook could be read.",
            "They count 0 points, and their authors’ pages say what to do.",
        ),
        Listing(
            "Undecided races",
            ["Student", "Test", "Why"],
            undecided,
            "No race was left undecided.",
            "They are marked “needs manual grade” in the formgrader.",
        ),
        Listing(
            "Suspicious",
            ["Student", "Where", "What"],
            suspicious,
            "Nothing suspicious was seen.",
            "What was tried could only lose points; whether it was meant badly, only you can tell.",
        ),
        *(
            listing
            for listing in (put_back(results), by_hand(results), judged_again(results))
            if listing.rows
        ),
    ]


def put_back(results: ClassResults) -> Listing:
    """Cells of the assignment that had been changed, moved or deleted."""
    return Listing(
        "Cells put back",
        ["Student", "Cells"],
        [
            [graded.student, "; ".join(remark.partition(";")[0] for remark in graded.put_back)]
            for graded in results.graded
            if graded.put_back
        ],
        "",
        "Their originals were put back before grading, so this costs no points by itself. The same cell in "
        "most submissions is one that you have changed since it was handed out.",
    )


def by_hand(results: ClassResults) -> Listing:
    """Points that somebody gave, beside those of the test; where the test gives more, it says so."""
    return Listing(
        "Points given by hand",
        ["Student", "Test", "Given", "By the test", ""],
        [
            [
                graded.student,
                test,
                f"{given:g}",
                "none" if points is None else f"{points:g}",
                "the test gives more by now" if (points or 0) > given else "",
            ]
            for graded in results.graded
            for test, (points, given) in graded.by_hand.items()
        ],
        "",
        "They stay, whatever is handed in or changed later.",
    )


def judged_again(results: ClassResults) -> Listing:
    """The old verdicts beside the new ones, where an exercise was judged again."""
    return Listing(
        "Judged again",
        ["Student", "Test", "When", "Before", "New verdict", "Which counts"],
        [
            [
                str(dispute["student"]),
                str(test["test"]),
                str(dispute["when"]),
                *(
                    f"{found['points']:g} points, {found['outcome']}: {found['message']}"
                    for found in (test["before"], test["now"])
                ),
                str(test["counts"]),
            ]
            for dispute in results.disputes
            for test in dispute["tests"]
        ],
        "",
    )


def exercise_spreads(results: ClassResults) -> list[Spread]:
    """The points of each exercise that has tests."""
    found = []
    for exercise in results.exercises:
        names = results.tests_of(exercise)
        if not names:
            continue
        most = sum(results.most[name] for name in names)
        got = [sum(test.points for test in graded.tests if test.name in names) for graded in results.graded]
        full = sum(points >= most - 1e-9 for points in got)
        none = sum(points <= 0 for points in got)
        found.append(Spread(exercise, most, mean(got), (full, len(got) - full - none, none)))
    return found


def race_section(results: ClassResults, name: str) -> RaceSection | None:
    """The ratios that the class reached in one race; nothing for a test that timed nobody."""
    tests = [test for graded in results.graded for test in graded.tests if test.name == name]
    laps = [lap for test in tests for lap in test.laps]
    if not laps:
        return None
    devices = [
        on_device(name, [lap for lap in laps if lap.device == device])
        for device in dict.fromkeys(lap.device for lap in laps)
    ]
    return RaceSection(name, devices, not_timed(tests))


def on_device(name: str, laps: Sequence[Lap]) -> OnDevice:
    """What was measured in one race on the device of these ``laps``."""
    required = laps[0].required
    reached = sum(lap.ratio >= required for lap in laps)
    text = (
        f"On {laps[0].device}, {reached} of {len(laps)} timed answers measured {times(required)} (asked "
        f"for) or more; median {times(median(lap.ratio for lap in laps))}."
    )
    return OnDevice(text, race_picture(laps, required, f"{name}: {text}"))


def not_timed(tests: Sequence[GradedTest]) -> str:
    """How many answers a race did not time, or left undecided."""
    undecided = sum(test.outcome == "undecided" for test in tests)
    rest = [f"{len(tests) - sum(bool(test.laps) for test in tests)} answers were not timed"]
    rest += [f"{undecided} undecided"] if undecided else []
    return f"{'; '.join(rest)}."


def time_rows(results: ClassResults) -> list[list[str]]:
    """What the time was spent on, altogether and for each submission."""
    names = {"cells": "students' cells", "tests": "tests", "races": "races", "total": "all together"}
    spent = {name: sum(graded.seconds.get(name, 0) for graded in results.graded) for name in names}
    return [
        [title, length(spent[name]), f"{spent[name] / len(results.graded):.1f} s"]
        for name, title in names.items()
    ]


def last_run(results: ClassResults) -> list[str]:
    """What the last run did, if it left a record."""
    seconds, graded = results.run.get("seconds"), len(results.run.get("graded", ()))
    return [] if seconds is None else [f"The last run graded {graded} submissions in {length(seconds)}."]


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
    refused = [str(found["noisy"]) for found in noise if found.get("noisy")]
    if refused:
        return f"The machine found itself too noisy to judge {len(refused)} times: {refused[-1]}"
    if not checks:
        return "The machine did not check itself, because no race was timed."
    worst = max(checks, key=lambda found: found["spread"] + abs(found["bias"]))
    low, high = (math.exp(worst["bias"] + sign * worst["spread"]) for sign in (-1, 1))
    often = "once" if len(checks) == 1 else f"{len(checks)} times"
    return (
        f"The machine checked itself {often}: the same function against itself came out between "
        f"{low:.2f}× and {high:.2f}× at worst ({worst['when']}). {uneven(noise)}".rstrip()
    )


def uneven(noise: Sequence[Mapping[str, Any]]) -> str:
    """Whether launches were off so often that a race could not end early."""
    found = [float(one["strays"]) for one in noise if one.get("signs_only")]
    if not found:
        return ""
    return (
        f"In {len(found)} of {len(noise)} notebooks with races, launches were off by more than {times(FAR)} "
        f"so often (up to {100 * max(found):.0f} % of them) that only their signs counted."
    )


def points_picture(points: Sequence[float], most: float) -> Picture:
    """How many students have how many points."""
    bins = min(20, max(5, math.ceil(most))) if most else 1
    counts = Counter(min(int(value / most * bins), bins - 1) if most else 0 for value in points)
    figure, axes = _figure(2.6)
    width = most / bins
    for place, count in counts.items():
        axes.bar(place * width, count, width * 0.92, align="edge", color=HERE)
    middle = median(points)
    axes.axvline(middle, color=GUESS, lw=2, ls="--")
    axes.set_xlim(0, most or 1)
    axes.set_title(f"dashed: median, {middle:.1f} points", fontsize=10, color=INK, loc="left")
    axes.set_xlabel("points")
    axes.set_ylabel("students")
    text = "; ".join(
        f"{place * width:g} to {(place + 1) * width:g} points: {count}"
        for place, count in sorted(counts.items())
    )
    return _picture(figure, f"Students by points. {text}. Median {middle:.1f}.")


def exercises_picture(spreads: Sequence[Spread]) -> Picture:
    """For each exercise the share of the class with all, some and no points."""
    figure, axes = _figure(0.9 + 0.38 * len(spreads))
    for place, spread in enumerate(spreads):
        left = 0.0
        colours = (HERE, RECORDED, PALE), ("white", "black", "black")
        for count, of_class, colour, ink in zip(spread.counts, spread.shares, *colours, strict=True):
            share = 100 * of_class
            axes.barh(place, share, left=left, color=colour, height=0.7)
            if share > 7:
                axes.text(
                    left + share / 2, place, str(count), ha="center", va="center", color=ink, fontsize=9
                )
            left += share
    axes.set_yticks(range(len(spreads)), [spread.exercise for spread in spreads])
    axes.set_ylim(len(spreads) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.set_title("blue: all points, orange: some, grey: none", fontsize=10, color=INK, loc="left")
    axes.set_xlabel("% of the class; the numbers count students")
    text = "; ".join(
        "{}: {} all, {} some, {} none".format(spread.exercise, *spread.counts) for spread in spreads
    )
    return _picture(figure, f"Students with all, some and no points. {text}.")


def race_picture(laps: Sequence[Lap], required: float, text: str) -> Picture:
    """A histogram of the ratios on a logarithmic axis; one edge of its bars is the ratio asked for."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ratios = [lap.ratio for lap in laps]
    low, high = min(*ratios, required, 1), max(*ratios, required)
    step = max(math.log(high / low) / 18, math.log(1.15))
    counts = Counter(math.floor(math.log(ratio / required) / step + 1e-9) for ratio in ratios)
    figure, axes = _figure(2.1)
    for place, count in counts.items():
        left, right = (required * math.exp(step * edge) for edge in (place + 0.04, place + 0.96))
        colour, hatch = (HERE, None) if place >= 0 else (RECORDED, "///")
        axes.bar(left, count, right - left, align="edge", color=colour, hatch=hatch, edgecolor="white", lw=0)
    axes.axvline(required, color=INK, lw=2)
    axes.annotate(
        f"{times(required)} asked for", (required, 1), xycoords=("data", "axes fraction"),
        xytext=(0, 4), textcoords="offset points", ha="center", fontsize=10, color=INK,
    )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(low / math.exp(step), high * math.exp(step))
    wide = high / low > 100
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: times(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("times as fast as the given version (logarithmic)")
    axes.set_ylabel("students")
    return _picture(figure, text)


def _figure(height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(4.4, height), layout="constrained")
    axes = figure.add_subplot()
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _picture(figure: Figure, alternative: str) -> Picture:
    import matplotlib

    with matplotlib.rc_context(
        {"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "report"}
    ):
        image = io.BytesIO()
        figure.savefig(image, format="svg", metadata={"Date": None})
    data = base64.b64encode(image.getvalue()).decode()
    return Picture(alternative, f"data:image/svg+xml;base64,{data}")


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as error:
        raise GradingError(
            f"The report cannot be written: {error}. Choose another place: --output FILE"
        ) from None


def main(argv: list[str] | None = None) -> int:
    """Write the page; 0 if that was possible, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m autograder report",
        description="Write a page about a graded class, in the course's folder.",
    )
    parser.add_argument("assignment", metavar="ASSIGNMENT")
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: reports/ASSIGNMENT.html")
    parser.add_argument("--db", metavar="URL", help="the gradebook (default: the one in nbgrader_config.py)")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore", SAWarning)
    try:
        with Course(options.assignment, options.db, write=False) as course:
            results = read_results(course)
            if not results.graded:
                raise GradingError(
                    f"Nothing of {options.assignment} is graded yet. Run `python -m autograder grade "
                    f"{options.assignment}` first."
                )
            path = options.output or course.root / "reports" / f"{options.assignment}.html"
            _write(path, page(results))
    except GradingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(path)
    return 0
