"""One page about a graded class: points, races, what an instructor should look at, time, the machine."""

from __future__ import annotations

import argparse
import base64
import io
import math
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from statistics import mean, median

from sqlalchemy.exc import SAWarning

from ..files import write_whole
from ..measuring.units import times
from ..teaching.chart import GUESS, HERE, INK, RECORDED
from .course import Course, GradingError
from .progress_bar import length
from .results import ClassResults, Lap, read_results

PALE = "#D9D9D9"
STYLE = f"""
body {{ font: 16px/1.5 system-ui, sans-serif; color: {INK}; max-width: 52rem; margin: auto; padding: 1rem; }}
h1 {{ line-height: 1.2; }} h2 {{ margin-top: 2.2rem; border-bottom: 2px solid {PALE}; }}
h3 {{ margin-bottom: .2rem; }}
img {{ width: 100%; max-width: 36rem; height: auto; display: block; }}
.table {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }}
th, td {{ text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; }}
tr {{ border-bottom: 1px solid {PALE}; }}
th {{ white-space: nowrap; }} td {{ overflow-wrap: break-word; max-width: 24rem; }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
.facts {{ display: flex; flex-wrap: wrap; gap: .6rem 2rem; padding: 0; list-style: none; }}
.facts b {{ display: block; font-size: 1.5rem; }}
"""


def page(results: ClassResults) -> str:
    """The whole page as HTML, with nothing to load from elsewhere."""
    sections = [
        overview(results),
        attention(results),
        exercises(results),
        machine(results),
    ]
    title = f"Grades of {escape(results.assignment)}"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main><h1>{title}</h1>{''.join(sections)}</main></body></html>\n"
    )


def overview(results: ClassResults) -> str:
    """How many, how well, and the distribution of the points."""
    points = [graded.points for graded in results.graded]
    most = sum(results.most.values())
    facts = [
        (f"{len(points)} of {len(points) + len(results.missing)}", "submissions graded"),
        (f"{mean(points):.1f} of {most:g}", "points, mean"),
        (f"{median(points):.1f}", "points, median"),
        (f"{min(points):g} to {max(points):g}", "points, lowest and highest"),
    ]
    items = "".join(f"<li><b>{value}</b>{name}</li>" for value, name in facts)
    return f'<ul class="facts">{items}</ul>{points_picture(points, most)}'


def attention(results: ClassResults) -> str:
    """What the instructor should look at: no grade, undecided, suspicious."""
    undecided = [
        (graded.student, test.name, test.message)
        for graded in results.graded
        for test in graded.tests
        if test.outcome == "undecided"
    ]
    suspicious = [
        (graded.student, event.get("cell") or "the notebook", event.get("what", ""))
        for graded in results.graded
        for event in graded.events
    ]
    return (
        "<h2>To look at</h2>"
        + listing(
            "Not graded", ["Student", "Why"], results.missing.items(), "Everybody who handed in is graded."
        )
        + listing(
            "Undecided races",
            ["Student", "Test", "Why"],
            undecided,
            "No race was left undecided.",
            "They are marked “needs manual grade” in the formgrader.",
        )
        + listing(
            "Suspicious",
            ["Student", "Where", "What"],
            suspicious,
            "Nothing suspicious was seen.",
            "What was tried could only lose points; whether it was meant badly, only you can tell.",
        )
    )


def exercises(results: ClassResults) -> str:
    """For each exercise its points, and the ratios measured in its races."""
    rows, races = [], []
    for exercise in results.exercises:
        names = results.tests_of(exercise)
        if not names:
            continue
        most = sum(results.most[name] for name in names)
        got = [sum(test.points for test in graded.tests if test.name in names) for graded in results.graded]
        full = sum(points >= most - 1e-9 for points in got)
        none = sum(points <= 0 for points in got)
        rows.append((exercise, most, mean(got), full, len(got) - full - none, none))
        races += [part for name in names if (part := race(results, name))]
    numbers = [
        [escape(name), f"{average:.2f} of {most:g}", *map(str, counts)]
        for name, most, average, *counts in rows
    ]
    return (
        "<h2>Exercises</h2>"
        + exercises_picture(rows)
        + table(["Exercise", "Mean points", "All points", "Some", "None"], numbers, numeric=range(1, 5))
        + ("<h2>Races</h2>" if races else "")
        + "".join(races)
    )


def race(results: ClassResults, name: str) -> str:
    """The ratios that the class reached in one race, a picture for each device; nothing without any."""
    tests = [test for graded in results.graded for test in graded.tests if test.name == name]
    laps = [lap for test in tests for lap in test.laps]
    if not laps:
        return ""
    undecided = sum(test.outcome == "undecided" for test in tests)
    parts = [f"<h3>{escape(name)}</h3>"]
    for device in dict.fromkeys(lap.device for lap in laps):
        here = [lap for lap in laps if lap.device == device]
        required = here[0].required
        reached = sum(lap.ratio >= required for lap in here)
        text = (
            f"On {escape(device)}, {reached} of {len(here)} timed answers measured {times(required)} (asked "
            f"for) or more; median {times(median(lap.ratio for lap in here))}."
        )
        parts.append(f"<p>{text}</p>{race_picture(here, required, f'{name}: {text}')}")
    rest = [f"{len(tests) - sum(bool(test.laps) for test in tests)} answers were not timed"]
    rest += [f"{undecided} undecided"] if undecided else []
    return "".join(parts) + f"<p>{'; '.join(rest)}.</p>"


def machine(results: ClassResults) -> str:
    """Time spent, the machine's check of itself, the sandbox."""
    names = {"cells": "students' cells", "tests": "tests", "races": "races", "total": "all together"}
    spent = {name: sum(graded.seconds.get(name, 0) for graded in results.graded) for name in names}
    rows = [
        [title, length(spent[name]), f"{spent[name] / len(results.graded):.1f} s"]
        for name, title in names.items()
    ]
    last = results.run.get("seconds")
    graded_last = len(results.run.get("graded", ()))
    said = [f"The last run graded {graded_last} submissions in {length(last)}."] if last is not None else []
    sandboxed = [on for graded in results.graded for on in graded.sandboxed]
    if not sandboxed:
        sandbox = "No submission says whether it ran in the sandbox."
    elif all(sandboxed):
        sandbox = "All submissions ran inside the sandbox (bubblewrap)."
    else:
        sandbox = (
            f"{sandboxed.count(False)} of {len(sandboxed)} notebooks ran without the sandbox: students' code "
            "could reach this account's files and the network. Install bubblewrap and grade them again."
        )
    return (
        "<h2>Time and machine</h2>"
        + table(["Spent on", "Sum", "For each"], rows, numeric=(1, 2))
        + "".join(f"<p>{sentence}</p>" for sentence in (*said, self_check(results), sandbox))
    )


def self_check(results: ClassResults) -> str:
    """What the same function against itself showed, before the machine judged others."""
    noise = [found for graded in results.graded for found in graded.noise]
    checks = {found["when"]: found for found in noise if "spread" in found and "when" in found}.values()
    refused = [escape(str(found["noisy"])) for found in noise if found.get("noisy")]
    if refused:
        return f"The machine found itself too noisy to judge {len(refused)} times: {refused[-1]}"
    if not checks:
        return "The machine did not check itself, because no race was timed."
    worst = max(checks, key=lambda found: found["spread"] + abs(found["bias"]))
    low, high = (math.exp(worst["bias"] + sign * worst["spread"]) for sign in (-1, 1))
    often = "once" if len(checks) == 1 else f"{len(checks)} times"
    return (
        f"The machine checked itself {often}: the same function against itself came out between "
        f"{low:.2f}× and {high:.2f}× at worst ({escape(str(worst['when']))})."
    )


def points_picture(points: Sequence[float], most: float) -> str:
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


def exercises_picture(rows: Sequence[tuple]) -> str:
    """For each exercise the share of the class with all, some and no points."""
    figure, axes = _figure(0.9 + 0.38 * len(rows))
    for place, (_, _, _, *counts) in enumerate(rows):
        left = 0
        for count, colour, ink in zip(
            counts, (HERE, RECORDED, PALE), ("white", "black", "black"), strict=True
        ):
            share = 100 * count / max(sum(counts), 1)
            axes.barh(place, share, left=left, color=colour, height=0.7)
            if share > 7:
                axes.text(
                    left + share / 2, place, str(count), ha="center", va="center", color=ink, fontsize=9
                )
            left += share
    axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.set_title("blue: all points, orange: some, grey: none", fontsize=10, color=INK, loc="left")
    axes.set_xlabel("% of the class; the numbers count students")
    text = "; ".join(f"{name}: {a} all, {b} some, {c} none" for name, _, _, a, b, c in rows)
    return _picture(figure, f"Students with all, some and no points. {text}.")


def race_picture(laps: Sequence[Lap], required: float, text: str) -> str:
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


def _figure(height: float) -> tuple:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(4.4, height), layout="constrained")
    axes = figure.add_subplot()
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _picture(figure: object, text: str) -> str:
    """The figure as an image in the page, with its facts as alternative text."""
    import matplotlib

    with matplotlib.rc_context(
        {"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "report"}
    ):
        image = io.BytesIO()
        figure.savefig(image, format="svg", metadata={"Date": None})
    data = base64.b64encode(image.getvalue()).decode()
    return f'<img alt="{escape(text)}" src="data:image/svg+xml;base64,{data}">'


def listing(
    title: str, heads: list[str], rows: Iterable[Sequence[str]], nothing: str, remark: str = ""
) -> str:
    """A titled table of cases, or a sentence that there are none."""
    rows = [[escape(str(value)) for value in row] for row in rows]
    if not rows:
        return f"<p>{nothing}</p>"
    return f"<h3>{title} ({len(rows)})</h3>" + (f"<p>{remark}</p>" if remark else "") + table(heads, rows)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: Iterable[int] = ()) -> str:
    """A table of HTML texts."""
    numeric = set(numeric)
    kind = [' class="number"' if place in numeric else "" for place in range(len(heads))]
    head = "".join(f'<th scope="col"{kind[place]}>{name}</th>' for place, name in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(f"<td{kind[place]}>{value}</td>" for place, value in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def write(text: str, path: Path) -> None:
    """Write the page in one piece. Raises GradingError where it cannot be written."""
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
            write(page(results), path)
    except GradingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(path)
    return 0
