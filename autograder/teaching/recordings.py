"""Timings recorded on named devices, one JSON file a device, so that readers without it see its figures.

A file holds ``device`` (name, kind, versions, date: where the figures come from) and ``timings``: by title
of the comparison, its claim, its clock and the seconds per call of every variant, a figure a round. With
``processes``, as many rounds are those of each process, in this order; without, all are of one.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from statistics import median
from typing import Any, Literal

from ..files import file_name, write_whole
from ..measuring import store
from ..measuring.device import provenance
from ..measuring.duel import Ratio, ratio_of
from ..measuring.settings import alone
from ..measuring.units import counted

TIMINGS = Path(__file__).resolve().parents[2] / "data" / "timings"


@dataclass(frozen=True)
class Timing:
    """What the variants of a comparison took on one device: seconds per call by variant, a figure a round.

    The first variant is the baseline. ``limit`` is the least time in seconds that the device could take.
    ``facts`` of a recorded one say where its figures come from; ``processes`` are the rounds of each process.
    """

    origin: Literal["here", "recorded"]
    device: str
    seconds: Mapping[str, Sequence[float]]
    limit: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    processes: Sequence[int] = ()

    @cached_property
    def ratios(self) -> dict[str, Ratio]:
        """How many times faster than the baseline each other variant is."""
        (_, slow), *others = self.seconds.items()
        return {name: ratio_of(slow, fast, self.processes) for name, fast in others}

    @property
    def gain(self) -> Ratio:
        """How many times faster than the baseline the last variant is."""
        return list(self.ratios.values())[-1]

    @property
    def at_the_limit(self) -> float | None:
        """How many times faster than the baseline the limit is."""
        return median(next(iter(self.seconds.values()))) / self.limit if self.limit else None


def kept_here() -> Path:
    """The folder with this machine's own timings of claims, in the user's cache."""
    return store.folder() / "timings"


def add_recording(
    directory: Path, device: str, title: str, timing: Timing, clock: str, claim: str | None = None
) -> Path:
    """Put one comparison into the file of this device, beside what is there; give the file's path."""
    facts = provenance(device)
    short = lambda seconds: float(f"{seconds:.4g}")
    taken = {
        "claim": claim,
        "clock": clock,
        "limit": timing.limit and short(timing.limit),
        "seconds": {name: list(map(short, values)) for name, values in timing.seconds.items()},
    }
    path = directory / f"{file_name(facts['name'])}.json"
    _add(path, facts, {title: taken})
    return path


def join(folders: Iterable[Path], directory: Path) -> set[Path]:
    """Put what processes have recorded, a folder each, into the files of their devices; give these files."""
    found: dict[Path, Any] = {}
    for path in (path for folder in folders for path in folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        joined = found.setdefault(directory / path.name, content | {"timings": {}})["timings"]
        for title, taken in content["timings"].items():
            empty = {"processes": [], "seconds": {name: [] for name in taken["seconds"]}}
            one = joined.setdefault(title, taken | empty)
            for name, seconds in taken["seconds"].items():
                one["seconds"][name] += seconds
            one["processes"].append(len(seconds))
    for path, content in found.items():
        _add(path, content["device"], content["timings"])
    return set(found)


def _add(path: Path, facts: Mapping[str, Any], timings: Mapping[str, Any]) -> None:
    """Put timings into the file of a device, beside what is there."""
    with alone():
        kept = json.loads(path.read_text(encoding="utf-8"))["timings"] if path.exists() else {}
        text = json.dumps({"device": facts, "timings": {**kept, **timings}}, indent=1)
        # A list of samples on one line, so that a changed figure is a changed line.
        text = re.sub(r"\[[^][{}]*\]", lambda found: re.sub(r"\s+", " ", found.group()), text)
        write_whole(path, f"{text}\n")


@lru_cache
def _content(path: Path, changed: int) -> Any:  # a record has some megabytes, and each comparison asks for it
    return json.loads(path.read_text(encoding="utf-8"))


def recordings(directory: Path | None = None) -> dict[str, list[Timing]]:
    """All comparisons that are recorded, by title; each once for every device that has it, by file name."""
    found: dict[str, list[Timing]] = {}
    for path in sorted((directory or TIMINGS).glob("*.json")):
        content = _content(path, path.stat().st_mtime_ns)
        facts = content["device"]
        driver = f", driver {facts['driver']}" if facts.get("driver") else ""
        where = f"{facts['name']}{driver}, torch {facts['torch']}, {facts['date']}"
        for title, kept in content["timings"].items():
            processes = kept.get("processes") or [len(next(iter(kept["seconds"].values())))]
            device = f"{where}, {counted(len(processes), 'process', 'processes')}"
            timing = Timing("recorded", device, kept["seconds"], kept.get("limit"), facts, processes)
            found.setdefault(title, []).append(timing)
    return found


def recordings_of(title: str, variants: Iterable[str], directory: Path | None = None) -> list[Timing]:
    """The recordings of the comparison ``title`` that hold all ``variants``, of these alone."""
    return [
        replace(one, seconds={name: one.seconds[name] for name in variants})
        for one in recordings(directory).get(title, [])
        if set(variants) <= set(one.seconds)
    ]


def is_recorded_on(kind: str) -> bool:
    """Whether any comparison is recorded on this kind of device."""
    return any(one.facts["kind"] == kind for found in recordings().values() for one in found)
