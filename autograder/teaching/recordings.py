"""Timings recorded on named devices, one JSON file a device, so that readers without it see its figures.

A file holds ``device`` (name, kind, versions, date: where the figures come from) and ``timings``: by title
of the comparison, its claim, its clock and the seconds per call of every variant, a figure a round.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..files import file_name, write_whole
from ..measuring import store
from ..measuring.device import device_name, provenance
from ..measuring.duel import Ratio, alone, ratio_of

TIMINGS = Path(__file__).resolve().parents[2] / "data" / "timings"


@dataclass(frozen=True)
class Recording:
    """One comparison recorded on one device: ``seconds`` per call by variant, and where they come from.

    ``limit`` is the least time in seconds that the device could take, where the comparison gives one.
    """

    device: dict
    clock: str
    seconds: dict[str, list[float]]
    limit: float | None = None

    @property
    def label(self) -> str:
        """One line for a chart or table."""
        device = self.device
        driver = f", driver {device['driver']}" if device.get("driver") else ""
        return f"{device['name']}{driver}, torch {device['torch']}, {device['date']}"

    def ratio(self, slow: str, fast: str) -> Ratio:
        """How many times faster ``fast`` was than ``slow`` on that device."""
        return ratio_of(self.seconds[slow], self.seconds[fast])


def kept_here() -> Path:
    """The folder with this machine's own timings of claims, in the user's cache."""
    return store.folder() / "timings"


def path_for(directory: Path, device: str) -> Path:
    """The file that holds the timings of the processor behind ``device``."""
    return directory / f"{file_name(device_name(device))}.json"


def add_recording(
    directory: Path,
    device: str,
    title: str,
    seconds: Mapping[str, list[float]],
    *,
    clock: str,
    claim: str | None = None,
    limit: float | None = None,
) -> Path:
    """Put one comparison into the file of this device, beside what is there; give the file's path."""
    path = path_for(directory, device)
    timing = {
        "claim": claim,
        "clock": clock,
        "limit": None if limit is None else float(f"{limit:.4g}"),
        "seconds": {name: [float(f"{value:.4g}") for value in values] for name, values in seconds.items()},
    }
    with alone():
        kept = json.loads(path.read_text(encoding="utf-8"))["timings"] if path.exists() else {}
        write_whole(path, _compact({"device": provenance(device), "timings": {**kept, title: timing}}))
    return path


def _compact(content: dict) -> str:
    """JSON with a list of samples on one line, so that a changed figure is a changed line."""
    text = json.dumps(content, indent=1)
    return re.sub(r"\[[^][{}]*\]", lambda found: re.sub(r"\s+", " ", found.group()), text) + "\n"


def recordings(directory: Path | None = None) -> dict[str, list[Recording]]:
    """All comparisons that are recorded, by title; each once for every device that has it, by file name."""
    found: dict[str, list[Recording]] = {}
    for path in sorted((directory or TIMINGS).glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        for title, timing in content["timings"].items():
            recording = Recording(content["device"], timing["clock"], timing["seconds"], timing.get("limit"))
            found.setdefault(title, []).append(recording)
    return found


def is_recorded_on(kind: str) -> bool:
    """Whether any comparison is recorded on this kind of device."""
    return any(one.device["kind"] == kind for found in recordings().values() for one in found)


def recordings_of(
    title: str, variants: Mapping[str, object], directory: Path | None = None
) -> list[Recording]:
    """The recordings of the comparison ``title`` that hold all ``variants``, by file name."""
    found = recordings(directory).get(title, [])
    return [recording for recording in found if set(variants) <= set(recording.seconds)]
