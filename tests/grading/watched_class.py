"""A class that hands in through an exchange, and watchers that grade it with a pool that pretends."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path

from grading_class import INBOUND
from nbgrader.utils import notebook_hash
from pretend_class import answered
from pretend_pools import Instant

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading.course import Course
from autograder.class_grading.engine import Job
from autograder.extras.watch.queue_file import QUEUE, Queue, read_queue
from autograder.extras.watch.watcher import Watcher
from autograder.judging.outcome import MIME

POOR = "def negate(x):\n    return x  # poor"
FULL, LESS = 16.0, 13.0  # the points of a right answer, and of a poor one
START = datetime(2027, 3, 5, 12, 0, tzinfo=timezone.utc)
number = count()


class Judging(Instant):
    """Gives nothing for ``negate`` where the answer says that it is poor."""

    def start(self, job: Job, cells: list[dict], **settings: object) -> None:
        super().start(job, cells, **settings)
        _, executed = self.jobs[-1]
        if isinstance(executed, str) or not any("# poor" in cell.source for cell in cells):
            return
        for cell in cells:
            if cell.role == "test" and cell.grade_id.startswith("negate"):
                shown, result = executed.outputs[cell.index]
                shown["data"][MIME] |= {"outcome": "failed", "points": 0.0}
                result["data"]["text/plain"] = "0.0"

    @property
    def graded(self) -> list[str]:
        """Whose submissions were run, in their order."""
        return [student for _, student in self.log]


def send(course: ScratchCourse, student: str, moment: datetime | None = None, **answers: str) -> Path:
    """Hand in as ``nbgrader submit`` does; gives the folder in the exchange."""
    turn = next(number)
    stamp = f"{moment or START + timedelta(minutes=turn):%Y-%m-%d %H:%M:%S.%f %Z}"
    folder = INBOUND / f"{student}+traps+{stamp}+{turn:012x}"
    folder.mkdir()
    notebook = answered(course.released("traps"), **answers)
    (folder / "traps.ipynb").write_text(json.dumps(notebook))
    (folder / "timestamp.txt").write_text(stamp)
    (folder / "submission_secret.txt").write_text(f"secret {turn}")
    folder.chmod(0o777)
    return folder


@contextmanager
def watching(pool: Callable[[bool], Instant] | None = None, **options: object) -> Iterator[Watcher]:
    with Course("watch") as opened:
        yield Watcher(opened, pool or Judging(), **options)


def to_the_end(watcher: Watcher) -> None:
    while watcher.round():
        pass


def watched(pool: Instant | None = None, **options: object) -> None:
    """One watcher that is started, grades all there is, and is stopped."""
    with watching(pool, **options) as watcher:
        to_the_end(watcher)


def queue() -> Queue:
    found = read_queue(QUEUE)
    assert found is not None
    return found


def page(folder: Path) -> Path:
    """Where the page about a submission is released."""
    secret = (folder / "submission_secret.txt").read_text()
    return Path("exchange/fast-pytorch/feedback", f"{notebook_hash(secret=secret, notebook_id='traps')}.html")
