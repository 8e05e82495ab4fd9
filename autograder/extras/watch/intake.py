"""New submissions, taken to a folder where nobody changes them while they wait and are graded.

``submitted/`` has what counts. A submission from the exchange gets there when it is graded, unless an earlier
one has more points: then it goes to ``.grading/passed_over/``.
"""

import glob
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from nbgrader.exchange import ExchangeFactory
from nbgrader.exchange.default import ExchangeCollect

from ...class_grading.course import Course
from ...nbgrader_plugin.collect import OWN_FOLDER, Collect, addressed, changed_settings, copy_plain_files
from ...nbgrader_plugin.patches import autograded_folder, owner
from ...nbgrader_plugin.submissions import TIMESTAMP, refusal, unfinished
from ...show import first_of
from .queue_file import Key, Place

NEW, PASSED_OVER = os.path.join(OWN_FOLDER, "new"), os.path.join(OWN_FOLDER, "passed_over")
# A folder may just be written to. A file system's clock has steps; that it is ahead is no reason to wait.
SETTLED_SECONDS = 2.0


class Intake:
    """Finds what is new, in the exchange and in ``submitted/``.

    ``assignments`` are watched, each with the names of its notebooks; ``students`` may hand in, or everybody,
    if it is None. ``waiting`` is what it took and what is not graded. ``say`` gets a sentence, perhaps many
    times, about each submission that is never taken. It belongs to one watcher at a time.
    """

    def __init__(self, course: Course, say: Callable[[str], None]) -> None:
        self.assignments: Mapping[str, list[str]] = {}
        self.students: Collection[str] | None = None
        self.waiting: dict[Key, Place] = {}
        self._directory, self._grader = course.directory, course.grader
        self._submitted = course.directory.submitted_directory
        self._say = say
        # Names in the exchange that need nothing any more, with the records of those that are submissions.
        self._known: dict[str, dict[str, Any] | None] = {}
        self._strangers: set[str] = set()  # who handed in and is missing in the gradebook
        self._done: dict[Key, int] = {}  # the folders in submitted/ that need nothing: when they changed
        # Of a watcher that was stopped; all of it is still where it came from.
        shutil.rmtree(course.root / NEW, ignore_errors=True)
        own = issubclass(ExchangeFactory(parent=course.grader.parent).collect, ExchangeCollect)
        self.inbound = self._collector().inbound if own else None  # of nbgrader's own exchange

    def look(self) -> bool:
        """Whether there is anything to take in; no file is read. Raises OSError for a lost exchange."""
        self._strangers.clear()
        found = bool(self._names()) or any(True for _ in self._folders())
        if self._strangers:
            why = "As c.Autograde.create_student is False, that waits for `nbgrader db student add ID`."
            who = first_of(sorted(map(ascii, self._strangers)))
            self._say(f"Handed in, but not in the gradebook: {who}. {why}")
        return found

    def take_in(self) -> None:
        """Take in what is new. Raises OSError where that is not possible; it is then found once more."""
        for assignment, names in self._names().items():
            self._collect(assignment, names)
        for found, changed in self._folders():
            if found.key in self.waiting and self.waiting[found.key].sent:
                continue  # what came through the exchange is newer
            staged = self.folder(found.key, NEW)
            shutil.rmtree(staged, ignore_errors=True)
            staged.parent.mkdir(parents=True, exist_ok=True)
            most = 1000 * self._directory.max_dir_size
            copy_plain_files(self.folder(found.key, self._submitted), staged, most)
            self.waiting[found.key] = found
            self._done[found.key] = changed

    def line(self) -> list[Place]:
        """Those that wait, in the order in which they are to be graded."""
        return sorted(self.waiting.values(), key=lambda one: (one.since, one.key))

    def on_the_way(self) -> list[Place]:
        """Those that are in the exchange and were not taken yet, in the order in which they arrived."""
        newest: dict[Key, str] = {}
        for assignment, names in self._names().items():
            newest |= {(assignment, addressed(name)[0]): name for name in sorted(names)}
        found = []
        for key, name in newest.items():
            with suppress(OSError):  # it has just gone
                arrived = os.lstat(os.path.join(str(self.inbound), name)).st_ctime
                found.append(self._place(*key, datetime.fromtimestamp(arrived, timezone.utc), sent=True))
        return sorted(found, key=lambda one: (one.arrived, one.key))

    def settle(self, place: Place, *, counts: bool) -> None:
        """Put a submission to where it belongs after grading: to those that count, or to the others."""
        staged = self.folder(place.key, NEW)
        if place.sent and staged.exists():
            target = self.folder(place.key, self._submitted if counts else PASSED_OVER)
            replace_folder(staged, target)
            if counts:
                self._done[place.key] = changed_at(target, self.assignments[place.assignment])
                shutil.rmtree(self.folder(place.key, PASSED_OVER), ignore_errors=True)
        elif staged.exists():
            shutil.rmtree(staged)
        self.waiting.pop(place.key, None)

    def folder(self, key: Key, step: str) -> Path:
        assignment, student = key
        return Path(self._directory.format_path(step, student, assignment))

    def _names(self) -> dict[str, set[str]]:
        """The folders in the exchange that were not looked at yet, by assignment."""
        found: dict[str, set[str]] = defaultdict(set)
        if self.inbound is None or not (self.inbound.exists() or self._known):  # nothing was released so far
            return found
        listed = set(os.listdir(self.inbound))
        self._known = {name: known for name, known in self._known.items() if name in listed}
        for name in listed - self._known.keys():  # anybody can put many there, so no date is read here
            student, assignment, _ = addressed(name)
            if assignment in self.assignments and self._may_hand_in(student):
                found[assignment].add(name)
        return found

    def _may_hand_in(self, student: str) -> bool:
        if student and student in (self._directory.student_id_exclude or "").split(","):
            return False
        if self.students is None or student in self.students:
            return True
        self._strangers.add(student)
        return False

    def _folders(self) -> Iterator[tuple[Place, int]]:
        for assignment, notebooks in self.assignments.items():
            for name in glob.glob(self._directory.format_path(self._submitted, "*", assignment)):
                student, folder = owner(self._grader, name)[1], Path(name)
                key, changed = (assignment, student), changed_at(folder, notebooks)
                before = self._done.get(key)
                if changed == before or 0 <= time.time_ns() - changed < SETTLED_SECONDS * 1e9:
                    continue
                if reason := refusal(student):
                    self._say(reason)
                elif self._new(folder, key, changed=before is not None):
                    if self._may_hand_in(student):
                        arrived = datetime.fromtimestamp(changed / 1e9, timezone.utc)
                        yield self._place(*key, arrived, sent=False), changed
                    continue
                self._done[key] = changed

    def _new(self, folder: Path, key: Key, *, changed: bool) -> bool:
        """Whether what is in submitted/ has to be graded; where it has no time, because it ``changed``."""
        graded = autograded_folder(self._grader, *key)
        if unfinished(graded, self.assignments[key[0]]):
            return True
        new, old = (self._directory.get_existing_timestamp(str(path)) for path in (folder, graded))
        return bool(new and old and new > old) or (changed and not new)

    def _place(self, assignment: str, student: str, arrived: datetime, *, sent: bool) -> Place:
        """Its place in the line, which who hands in again while waiting keeps."""
        time = arrived.replace(tzinfo=timezone.utc).isoformat()
        before = self.waiting.get((assignment, student))
        return Place(assignment, student, time, since=before.since if before else time, sent=sent)

    def _collector(self) -> Collect:
        return Collect(coursedir=self._directory, parent=self._grader.parent, update=True)

    def _collect(self, assignment: str, names: set[str]) -> None:
        with changed_settings(
            self._directory, assignment_id=assignment, student_id="*", submitted_directory=NEW
        ):
            collect = self._collector()
            known = [record for record in self._known.values() if record]
            collect.only, collect.earlier = names, [one for one in known if one["assignment"] == assignment]
            collect.init_src()
            for sentence in collect.told:
                self._say(sentence)
            for record in collect.src_records:
                place = self._place(assignment, record["username"], record["arrived"], sent=True)
                taken = [str(self.folder(place.key, step)) for step in (self._submitted, PASSED_OVER, NEW)]
                times = map(self._directory.get_existing_timestamp, taken)
                if not any(known and known >= record["timestamp"] for known in times):
                    self.waiting.pop(place.key, None)  # until all of the new one is there
                    collect.src_records = [record]
                    collect.copy_files()
                    self.waiting[place.key] = place
            self._known |= {name: collect.records.get(name) for name in names - collect.unready}


def replace_folder(folder: Path, target: Path) -> None:
    if target.is_symlink():
        target.unlink()
    elif target.exists():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(folder, target)


def changed_at(folder: Path, notebooks: list[str]) -> int:
    """When a folder, its notebooks or its time were last changed, in nanoseconds by the file system."""
    newest = 0
    for path in (folder, folder / TIMESTAMP, *(folder / f"{name}.ipynb" for name in notebooks)):
        with suppress(OSError):  # it is not there
            newest = max(newest, os.lstat(path).st_ctime_ns)
    return newest
