"""What a run on a GPU found, as a page of Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..measuring.device import device_name, provenance
from ..measuring.units import times

# A solution that exceeds what is asked for by less leaves too little room for other machines.
ROOM = 1.6


def report(found: Mapping[str, Mapping[str, Any]], device: str) -> str:
    """The page. ``found``: step -> item -> what ``command`` keeps of it."""
    facts = {name: value for name, value in provenance(device).items() if name != "kind"}
    lines = [
        f"# {device_name(device)}",
        "",
        ", ".join(f"{name} {value}" for name, value in facts.items()),
        "",
    ]
    lines += _errors({step: found[step] for step in ("branches", "recordings", "ratios")})
    lines += _ratios(found["ratios"], device)
    lines += _limits(found["limits"])
    lines += _judge(found["judge"], "The judge of a notebook")
    lines += _judge(found["apart"], "The judge outside the answer's process")
    return "\n".join(lines) + "\n"


def _errors(steps: Mapping[str, Mapping[str, Any]]) -> list[str]:
    runs = [(step, name, run) for step, notebooks in steps.items() for name, run in notebooks.items()]
    rows = [
        f"| {step} | {name} | {_cell(error['cell'])} | {_cell(error['line'])} | {_cell(error['error'])} |"
        for step, name, run in runs
        for error in run["errors"]
    ]
    table = ["| step | notebook | cell | line | error |", "| --- | --- | --- | --- | --- |", *rows, ""]
    return [f"## What failed: {len(rows)} in {len(runs)} runs of notebooks", "", *(table if rows else [])]


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
    lines = [
        f"## Races: {narrow} of {len(laps)} solutions exceed what is asked for by less than {times(ROOM)}",
        "",
        "| exercises | race | asked for | measured | room | of the limit |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, test, lap in laps:
        limit = f"{lap['of_limit']:.0%}" if lap.get("of_limit") else ""
        room = lap["ratio"] / lap["required"]
        mark = " **too little**" if room < ROOM else ""
        asked, measured = times(lap["required"]), times(lap["ratio"])
        lines.append(f"| {name} | {test} | {asked} | {measured} | {times(room)}{mark} | {limit} |")
    return [*lines, ""]


def _limits(devices: Mapping[str, Any]) -> list[str]:
    lines = []
    for found in devices.values():
        lines += ["## Limits", "", "| working set in MB | GB/s |", "| --- | --- |"]
        lines += [f"| {size / 1e6:.3g} | {rate / 1e9:.4g} |" for size, rate in found["bytes_per_second"]]
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


def _judge(loads: Mapping[str, Any], title: str) -> list[str]:
    if not loads:
        return []
    lines = [
        f"## {title}",
        "",
        "| the device is | true ratio / asked for | races | wrong | undecided | seconds, median |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {load} | {ratio} | {row['races']} | {row['wrong']} | {row['undecided']} | {row['seconds']} |"
        for load, rows in loads.items()
        for ratio, row in rows.items()
    ]
    return [*lines, ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
