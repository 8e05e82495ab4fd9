"""Who waits and who was graded, in one file, for a page that shows each student their own.

The watcher writes it, in one piece each time. Reading it takes neither nbgrader nor the gradebook.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Literal

import msgspec

from ...files import write_whole

QUEUE = Path(".grading", "queue.json")  # in the course's folder
BEAT = timedelta(minutes=1)  # between two times that the watcher says that it is there

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
        return self.at_work and now - datetime.fromisoformat(self.said) < 3 * BEAT

    def of(self, student: str) -> list[tuple[Place, int]]:
        """What a student may see: the own submissions, the newest first, and how many are before each."""
        waiting = [place for place in self.places if place.stage == "waiting"]
        own = [
            place if place.handed_back else replace(place, points=None, most=None, before=None)
            for place in self.places
            if place.student == student
        ]
        own.sort(key=lambda place: place.arrived, reverse=True)
        return [(place, waiting.index(place) if place in waiting else 0) for place in own]


class QueueFile:
    """The file, kept up to date. What it said about graded submissions before stays in it: ``ended``.

    ``found`` is all that it said. Raises OSError where it cannot be written.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / QUEUE
        before = read_queue(self._path)
        self.found = before.places if before else []
        self.ended = {place.key: place for place in self.found if place.ended}
        self._shown: tuple[list[Place], bool] = ([], False)
        self._said: datetime | None = None

    def show(self, line: Iterable[Place], *, trouble: bool = False) -> None:
        """Write who waits, and whether grading cannot go on; nothing, if the file says that already."""
        shown = list(line), trouble
        if shown != self._shown or not self._said or datetime.now(timezone.utc) - self._said > BEAT:
            self._shown, self._said = shown, None
            self._write(at_work=True)

    def end(self, place: Place) -> None:
        """Keep how a submission ended; the next ``show`` writes it."""
        self.ended[place.key] = place
        self._said = None

    def close(self) -> None:
        self._write(at_work=False)

    def _write(self, *, at_work: bool) -> None:
        now, (line, trouble) = datetime.now(timezone.utc), self._shown
        queue = Queue(now.isoformat(), at_work, trouble, [*line, *self.ended.values()])
        write_whole(self._path, msgspec.json.encode(queue).decode())
        self._said = now


def read_queue(path: Path) -> Queue | None:
    """What the file says; None where there is none that can be read."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(path.read_bytes(), type=Queue)
    return None
