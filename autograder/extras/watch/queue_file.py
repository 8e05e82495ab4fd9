"""Who waits and who was graded, in one file, for a page that shows each student their own.

The watcher writes it, in one piece each time. Reading it takes neither nbgrader nor the gradebook.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

QUEUE = Path(".grading", "queue.json")  # in the course's folder
# Of a watcher that is at work: it writes at every look, and after each submission.
SILENCE = timedelta(minutes=3)

Stage = Literal["waiting", "grading", "graded", "passed over", "failed"]
Key = tuple[str, str]  # assignment and student


@dataclass(frozen=True)
class Place:
    """A submission in the queue, or one that was graded; times are UTC, in ISO format.

    Its place counts from ``since``. ``sent``: it came through the exchange, and not to ``submitted/``. It has
    ``points`` of ``most``, the one ``before`` has others; a student is to see them when the page was
    ``handed_back``.
    """

    assignment: str
    student: str
    arrived: str
    stage: Stage = "waiting"
    ended: str | None = None
    points: float | None = None
    most: float | None = None
    before: float | None = None
    handed_back: bool = False
    since: str = ""
    sent: bool = False

    @property
    def key(self) -> Key:
        return self.assignment, self.student


@dataclass(frozen=True)
class Queue:
    """The places of all, those that wait first and in their order. ``trouble``: grading cannot go on now."""

    said: str
    at_work: bool
    trouble: bool
    places: list[Place]

    def alive(self, now: datetime) -> bool:
        return self.at_work and now - datetime.fromisoformat(self.said) < SILENCE

    def of(self, student: str) -> list[tuple[Place, int]]:
        """What a student may see: the own submissions, the newest first, and how many are before each."""
        waiting = [place for place in self.places if place.stage == "waiting"]
        own = [
            place if place.handed_back else replace(place, points=None, most=None, before=None)
            for place in sorted(self.places, key=lambda place: place.arrived, reverse=True)
            if place.student == student
        ]
        return [(place, waiting.index(place) if place in waiting else 0) for place in own]


def read_queue(path: Path) -> Queue | None:
    """What the file says; None where there is none that can be read."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(path.read_bytes(), type=Queue)
    return None
