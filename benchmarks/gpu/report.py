"""What a run on a GPU found, as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from autograder.measuring.units import times
from autograder.show import table_markdown

# A solution that exceeds what is asked for by less leaves too little room for other machines.
ROOM = 1.6
OTHERS = ("undecided", "refused")


def report(found: Mapping[str, Mapping[str, Any]], facts: Mapping[str, Any], device: str) -> str:
    """The page. ``found``: step -> item -> what ``gpu_run`` keeps of it; ``facts``: provenance."""
    about = (f"{name} {value}" for name, value in facts.items() if name not in ("kind", "name"))
    lines = [f"# {facts['name']}", "", ", ".join(about), ""]
    lines += _errors(found)
    lines += _ratios(found["ratios"], device)
    lines += _limits(found["limits"])
    lines += _judge(found["judge"], found["judge-busy"], "The judge of a notebook")
    lines += _judge(found["apart"], found["apart-busy"], "The judge outside the answer's process")
    return "\n".join(lines) + "\n"


def _errors(steps: Mapping[str, Mapping[str, Any]]) -> list[str]:
    runs = [(step, name, run) for step, items in steps.items() for name, run in items.items()]
    header = ("step", "item", "cell", "line", "error")
    rows = [
        [step, name, *(error[about].replace("\n", " ") for about in header[2:])]
        for step, name, run in runs
        for error in run["errors"]
    ]
    table = [table_markdown(header, rows), ""] if rows else []
    return [f"## What failed: {len(rows)} in {len(runs)} items", "", *table]


def _ratios(notebooks: Mapping[str, Any], device: str) -> list[str]:
    laps = [
        (name, race["test"], lap)
        for name, found in notebooks.items()
        for race in found["races"]
        for lap in race["laps"]
        if lap["device"] == device
    ]
    if not laps:
        return []
    narrow = sum(lap["ratio"] < ROOM * lap["required"] for _, _, lap in laps)
    title = f"## Races: {narrow} of {len(laps)} solutions exceed what is asked for by less than {times(ROOM)}"
    rows = []
    for name, test, lap in laps:
        limit = f"{lap['of_limit']:.0%}" if lap.get("of_limit") else ""
        room = lap["ratio"] / lap["required"]
        mark = " **too little**" if room < ROOM else ""
        asked, measured = times(lap["required"]), times(lap["ratio"])
        rows.append((name, test, asked, measured, f"{times(room)}{mark}", limit))
    header = ("exercises", "race", "asked for", "measured", "room", "of the limit")
    return [title, "", table_markdown(header, rows), ""]


def _limits(items: Mapping[str, Any]) -> list[str]:
    lines = []
    for found in items.values():
        if found["errors"]:
            continue
        moved = [(f"{size / 1e6:.3g}", f"{rate / 1e9:.4g}") for size, rate in found["bytes_per_second"]]
        lines += ["## Limits", "", table_markdown(("working set in MB", "GB/s"), moved)]
        lines += ["", f"Arithmetic: {found['flops_per_second'] / 1e12:.3g} TFLOP/s.", ""]
        if sheet := found.get("sheet"):
            lines += [
                f"Of its [data sheet]({sheet['link']}): {sheet['share_of_bytes']:.0%} of "
                f"{sheet['bytes_per_second'] / 1e9:.4g} GB/s and {sheet['share_of_flops']:.0%} of "
                f"{sheet['flops_per_second'] / 1e12:.3g} TFLOP/s.",
                "",
            ]
        else:
            lines += [f"No data sheet of {found['device']} is known here.", ""]
    return lines


def _judge(quiet: Mapping[str, Any], busy: Mapping[str, Any], title: str) -> list[str]:
    rows = [row for load, races in (("quiet", quiet), ("busy", busy)) for row in _rows(load, races)]
    if not rows:
        return []
    header = ("the device is", "true ratio / asked for", "races", "wrong", *OTHERS, "seconds, median")
    return [f"## {title}", "", table_markdown(header, rows), ""]


def _rows(load: str, races: Mapping[str, Any]) -> Iterator[list[str]]:
    """A row for each ratio; ``races`` are named "RATIO race NUMBER"."""
    for ratio in sorted({name.split()[0] for name in races}, key=float):
        ran = [race for name, race in races.items() if name.split()[0] == ratio and not race["errors"]]
        words = [race["word"] for race in ran]
        counts = map(words.count, ("slower" if float(ratio) > 1 else "faster", *OTHERS))
        seconds = f"{median(race['seconds'] for race in ran):.2f}" if ran else ""
        yield [load, ratio, str(len(ran)), *map(str, counts), seconds]
