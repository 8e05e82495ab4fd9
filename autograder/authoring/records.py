"""Records of timings, as others send them: whether a file is whole and plausible; and a page that lists all.

A record is a file as `make record` writes it; see ``teaching/recordings.py``.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from ..files import write_whole
from ..show import table_markdown
from ..teaching.scripts import Cell, comparisons

FACTS = msgspec.toml.decode(Path(__file__).with_name("record_facts.toml").read_bytes())
KINDS = ("cpu", "cuda", "mps")
CLOCKS = ("cpu", "wall", "cuda", "mps")
LEAST_ROUNDS = 5
LONGEST = 60.0  # seconds of a call
LARGEST_RATIO = 1e6
HEADER = ("device", "kind", "torch", "date", "processes", "comparisons", "missing", "file")


def problems(content: Any, known: Sequence[Cell]) -> list[str]:
    """Why a record cannot be believed; a sentence each, none for one that can."""
    if not _is_record(content):
        return ["this is no file of `make record`: it lacks `device` or `timings`"]
    found = list(_problems_of_device(content["device"]))
    for title, timing in content["timings"].items():
        if not any(one.is_called(title) for one in known):
            found.append(f"no chapter has a comparison {title!r}")
        else:
            found += [f"{title}: {problem}" for problem in _problems_of_timing(timing)]
    return found


def _is_record(found: Any) -> bool:
    return isinstance(found, dict) and all(isinstance(found.get(key), dict) for key in ("device", "timings"))


def _problems_of_device(device: Mapping[str, Any]) -> Iterator[str]:
    if (kind := device.get("kind")) not in KINDS:
        yield f"the device is of kind {kind!r}, not {', '.join(KINDS)}"
    of_kind = FACTS.get("rocm" if "rocm" in device else str(kind), {})
    for fact, form in (FACTS["all"] | of_kind).items():
        if not re.fullmatch(form, str(device.get(fact, ""))):
            yield f"the device's {fact} is {device.get(fact)!r}"
    if str(device.get("date")) > date.today().isoformat():
        yield f"it is of the future: {device['date']}"


def _problems_of_timing(timing: Any) -> Iterator[str]:
    try:
        clock, seconds = timing["clock"], timing["seconds"]
        rounds = [len(values) for values in seconds.values()]
        processes = timing.get("processes", rounds[:1])
        in_all = sum(processes)
        everything = [float(value) for values in seconds.values() for value in values]
    except (TypeError, KeyError, AttributeError, ValueError):
        yield "it lacks a clock or the seconds of each variant"
        return
    if clock not in CLOCKS:
        yield f"the clock is {clock!r}"
    if len(rounds) < 2 or min(rounds) < LEAST_ROUNDS:
        yield f"{len(rounds)} variants of at least {min(rounds, default=0)} rounds, not 2 of {LEAST_ROUNDS}"
    elif {in_all} != set(rounds) or min(processes) < LEAST_ROUNDS:
        yield f"its processes have {processes} rounds, its variants {rounds}"
    elif not all(0 < value < LONGEST for value in everything):
        yield f"a call took {min(everything):.3g} to {max(everything):.3g} s"
    elif (ratio := max(medians := [*map(median, seconds.values())]) / min(medians)) > LARGEST_RATIO:
        yield f"one variant is {ratio:,.0f} times as fast as another"


def missing(content: Mapping[str, Any], known: Sequence[Cell]) -> Counter[str]:
    """Chapter -> how many comparisons a record lacks, of those that its kind of device always makes."""
    kind = content["device"]["kind"]
    always = (one for one in known if one.only in (None, kind) and not one.sometimes)
    return Counter(one.chapter for one in always if not any(map(one.is_called, content["timings"])))


def shortcomings(path: Path, course: Path) -> list[str]:
    """Why the record in ``path`` is not whole and plausible; a sentence each."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return [f"it cannot be read: {error}"]
    known = comparisons(course)
    return problems(content, known) or [
        f"{chapter}: {number} comparisons are missing; make record ARGS={chapter[:2]} adds them"
        for chapter, number in missing(content, known).items()
    ]


def list_of_records(timings: Path, course: Path) -> str:
    """The page that lists the records in the folder ``timings``, as Markdown. Raises ValueError."""
    known, rows = comparisons(course), []
    for path in sorted(timings.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if not _is_record(content):
            raise ValueError(f"{path.name} is no file of `make record`")
        device = content["device"]
        facts = [device[fact] for fact in ("name", "kind", "torch", "date")]
        processes = sorted({len(timing.get("processes", "1")) for timing in content["timings"].values()})
        runs = " to ".join(map(str, dict.fromkeys(processes[:1] + processes[-1:])))
        numbers = (runs, len(content["timings"]), missing(content, known).total())
        rows.append([*map(str, (*facts, *numbers)), f"[{path.name}]({path.name})"])
    form = Path(__file__).with_name("records_page.txt").read_text("utf-8")
    return form.format(table=table_markdown(HEADER, rows))


def write_page(root: Path) -> None:
    """Write that page beside the records of the repository at ``root``, where there are any."""
    timings = root / "data" / "timings"
    if timings.is_dir():
        write_whole(timings / "README.md", list_of_records(timings, root / "course"))
