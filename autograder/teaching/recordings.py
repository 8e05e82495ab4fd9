"""Timings recorded on named devices, one JSON file a device, so that readers without it see its figures.

A file holds ``device`` (name, kind, versions, date: where the figures come from) and ``timings``: by title
of the comparison, its claim, its clock and the seconds per call of every variant, a figure a round.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, Literal

from ..files import file_name, write_whole
from ..measuring import store
from ..measuring.device import provenance
from ..measuring.duel import Ratio, log_ratios, ratio_of_logs
from ..measuring.settings import alone

TIMINGS = Path(__file__).resolve().parents[2] / "data" / "timings"


@dataclass(frozen=True)
class Timing:
    """What the variants of a comparison took on one device: seconds per call by variant, a figure a round.

    The first variant is the baseline. ``limit`` is the least time in seconds that the device could take.
    ``facts`` of a recorded one say where its figures come from.
    """

    origin: Literal["here", "recorded"]
    device: str
    seconds: Mapping[str, Sequence[float]]
    limit: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The device, and whether it is here."""
        return f"{self.origin}: {self.device}"

    @cached_property
    def ratios(self) -> dict[str, Ratio]:
        """How many times faster than the baseline each other variant is."""
        (_, slow), *others = self.seconds.items()
        return {name: ratio_of_logs(log_ratios(slow, fast)) for name, fast in others}

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
    path = directory / f"{file_name(facts['name'])}.json"
    short = lambda seconds: float(f"{seconds:.4g}")
    taken = {
        "claim": claim,
        "clock": clock,
        "limit": timing.limit and short(timing.limit),
        "seconds": {name: list(map(short, values)) for name, values in timing.seconds.items()},
    }
    with alone():
        kept = json.loads(path.read_text(encoding="utf-8"))["timings"] if path.exists() else {}
        text = json.dumps({"device": facts, "timings": {**kept, title: taken}}, indent=1)
        # A list of samples on one line, so that a changed figure is a changed line.
        text = re.sub(r"\[[^][{}]*\]", lambda found: re.sub(r"\s+", " ", found.group()), text)
        write_whole(path, f"{text}\n")
    return path


def recordings(directory: Path | None = None) -> dict[str, list[Timing]]:
    """All comparisons that are recorded, by title; each once for every device that has it, by file name."""
    found: dict[str, list[Timing]] = {}
    for path in sorted((directory or TIMINGS).glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        facts = content["device"]
        driver = f", driver {facts['driver']}" if facts.get("driver") else ""
        device = f"{facts['name']}{driver}, torch {facts['torch']}, {facts['date']}"
        for title, kept in content["timings"].items():
            timing = Timing("recorded", device, kept["seconds"], kept.get("limit"), facts)
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
