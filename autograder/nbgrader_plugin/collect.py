"""Takes submissions out of nbgrader's exchange, a folder that students can put anything into.

nbgrader's own ``collect`` stops for everybody at one name that it cannot read, copies what a link leads to,
takes what is there only by half, and leaves half a submission behind where a disk is full.
"""

import errno
import fnmatch
import os
import shutil
import stat
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeCollect
from nbgrader.utils import check_mode, parse_utc

from ..show import first_of
from .entries import TABLE
from .reading import NotPlain, read_plain
from .submissions import MOST_ENTRIES, TIMESTAMP, refusal, time_text

# The rights that nbgrader gives to a submission's folder when all of it is there.
COMPLETE = 0o777
# After so long, one with other rights was put there in another way.
MOST_SECONDS = 60
MOST_DEPTH = 10  # of folders in folders
OWN_FOLDER = ".grading"
# From the time that `nbgrader submit` notes to the last file in the exchange it takes seconds.
MOST_ON_THE_WAY = timedelta(minutes=10)
MOST_TOLD = 100  # refused names
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


def addressed(name: str) -> tuple[str, str, str]:
    """The student, the assignment and the time that a folder's name in the exchange says, each perhaps ""."""
    student, assignment, said, *_ = (*name.rsplit("+", 3), "", "")
    return student, assignment, said


class Collect(ExchangeCollect):
    """``nbgrader collect``, with a look at each submission before it is taken.

    ``only``: the names of the folders in the exchange that are looked at; all, if it is None. ``earlier``:
    the ``records`` of others, which are still there. Afterwards, ``records`` has what there is to know of
    each submission, by the folder's name, ``unready`` the names of those that are just being handed in, and
    ``told`` sentences for the instructor.
    """

    only: Collection[str] | None = None
    earlier: Sequence[dict[str, Any]] = ()

    @property
    def inbound(self) -> Path:
        return Path(self.root, self.coursedir.course_id, "inbound")

    def init_src(self) -> None:
        """Find the newest submission of each student; the newest that is not late, if that is asked for."""
        self.unready: set[str] = set()
        self.refused: dict[str, str] = {}
        if not self.coursedir.course_id:
            self.fail("No course id specified. Re-run with --course flag.")
        self.inbound_path = str(self.inbound)
        if not check_mode(self.inbound_path, read=True, execute=True):
            self.fail(f"The exchange has no folder {self.inbound_path} that this account can read.")
        names = os.listdir(self.inbound_path) if self.only is None else self.only
        self.records = {name: record for name in names if (record := self._record(name))}
        new, all_records = self.records.values(), [*self.earlier, *self.records.values()]
        count_from_arrival(all_records)
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for record in all_records if self.before_duedate else new:
            if fnmatch.fnmatchcase(record["username"], self.coursedir.student_id or "*"):
                found[record["username"]].append(record)
        due = None
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook, suppress(MissingEntry):
            if self.before_duedate:
                due = gradebook.find_assignment(self.coursedir.assignment_id).duedate
        self.src_records = []
        for records in found.values():
            punctual = [record for record in records if due and record["timestamp"] <= due]
            self.src_records.append(max(punctual or records, key=lambda record: record["timestamp"]))
        self.told = list(self._tell())
        for sentence in self.told:
            self.log.warning("%s", sentence)

    def _tell(self) -> Iterator[str]:
        """What the instructor should know of what was found."""
        yield from (f"{name!a}: {why}" for name, why in list(self.refused.items())[:MOST_TOLD])
        if len(self.refused) > MOST_TOLD:
            yield f"{len(self.refused) - MOST_TOLD} more names in the exchange are refused."
        what = f"the submission of {self.coursedir.assignment_id}"
        late = [one for one in self.src_records if one["arrived"] - one["said"] > MOST_ON_THE_WAY]
        for one in late:
            if one["timestamp"] != one["said"]:
                said, arrived = time_text(one["said"]), time_text(one["arrived"])
                advice = f"Where that is wrong, give the student days in {TABLE}."
                why = f"{what} says {said}, but arrived {arrived}, and most others came when they say"
                yield f"{one['username']}: {why}. So it counts from its arrival. {advice}"
        if doubtful := sorted(one["username"] for one in late if one["timestamp"] == one["said"]):
            so = "so did most others, or there are too few: an exchange that was copied or restored looks so"
            yield f"{first_of(doubtful)}: {what} arrived later than it says, and {so}. Their own times count."

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy what was handed in, without links; ``dest`` is there when all of it is."""
        own = Path(self.coursedir.root, OWN_FOLDER)
        own.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=own, prefix="taken-") as scratch:
            everything, wanted = Path(scratch, "everything"), Path(scratch, "wanted")
            copy_plain_files(Path(src), everything, 1000 * self.coursedir.max_dir_size)
            # The time that counts, and in a second line what the submission says, if that is another.
            (record,) = (one for one in self.src_records if one["filename"] == os.path.basename(src))
            times = dict.fromkeys(time_text(record[kind]) for kind in ("timestamp", "said"))
            shutil.rmtree(everything / TIMESTAMP, ignore_errors=True)  # if it is a folder
            (everything / TIMESTAMP).write_text("\n".join(times), encoding="utf-8")
            # By the course's rules, but for the one that keeps its own scripts with the instructors: students
            # hand in modules.
            rules = [pattern for pattern in self.coursedir.ignore if pattern != "*.py"]
            try:
                with changed_settings(self.coursedir, ignore=rules):
                    super().do_copy(str(everything), str(wanted), log)
            except shutil.Error as error:
                raise OSError(f"{src} cannot be copied: {error.args[0][0][2]}") from None
            shutil.move(wanted, dest)

    def _record(self, name: str) -> dict[str, Any] | None:
        """A submission as nbgrader notes it, with the time that it ``said``, and when it ``arrived`` by the
        file system's clock, which no student sets. None where it is not to be taken.
        """
        student, assignment, said = addressed(name)
        if assignment != self.coursedir.assignment_id:
            return None
        path = os.path.join(self.inbound_path, name)
        try:
            about = os.lstat(path)
        except OSError:  # it has just gone
            return None
        if reason := self._objection(student, about):
            self.refused[name] = reason
            return None
        if stat.S_IMODE(about.st_mode) & COMPLETE != COMPLETE and time.time() - about.st_ctime < MOST_SECONDS:
            self.unready.add(name)
            return None
        try:
            moment = parse_utc(said)
        except Exception:  # dates can be wrong in many ways
            return None
        arrived = datetime.fromtimestamp(last_change(path, about), timezone.utc).replace(tzinfo=None)
        times = {"timestamp": moment, "said": moment, "arrived": arrived}
        return {"username": student, "assignment": assignment, "filename": name, **times}

    def _objection(self, student: str, about: os.stat_result) -> str | None:
        """Why a submission is never taken, if so."""
        if not student or student.startswith("."):  # ".." would be the folder above
            return f"The student id {student!a} is empty or begins with a dot, so nothing of it was taken."
        if reason := refusal(student):
            return reason
        if not stat.S_ISDIR(about.st_mode):
            return "This is no folder, so it is no submission."
        if self.check_owner and about.st_uid not in (0, os.getuid()):
            import pwd  # not on Windows, where only students work

            with suppress(KeyError):  # nbgrader warns where there is no such account
                account = pwd.getpwuid(about.st_uid).pw_name
                if account != student:
                    why = f"It says that it is of {student}, but the account {account} put it there"
                    advice = "If accounts have other names: c.ExchangeCollect.check_owner = False."
                    return f"{why}, so it was not taken. {advice}"
        return None


def count_from_arrival(records: Iterable[dict[str, Any]]) -> None:
    """Let submissions of one assignment that arrived later than they say count from their arrival.

    Not where most of the other students' that had arrived before came later than they say, too: so it is in
    an exchange that was restored or copied.
    """
    trust: dict[str, int] = {}  # of each student's last one: 1 where it came when it says, -1 where later
    of_all = 0
    for record in sorted(records, key=lambda record: record["arrived"]):
        student, delay = record["username"], record["arrived"] - record["said"]
        late, of_others = delay > MOST_ON_THE_WAY, of_all - trust.get(student, 0)
        record["timestamp"] = record["arrived" if late and of_others > 0 else "said"]
        trust[student] = -1 if late else int(-delay <= MOST_ON_THE_WAY)
        of_all = of_others + trust[student]


def last_change(folder: str, about: os.stat_result) -> float:
    """When something in a folder was last changed, by the file system's clock; ``about`` is the folder's."""
    newest, entries = about.st_ctime, 0
    with suppress(OSError):  # it has just gone
        for place, folders, names, descriptor in os.fwalk(folder):  # it follows no links
            entries += len(folders) + len(names)
            if entries > MOST_ENTRIES:  # none of these is copied
                break
            for name in (*folders, *names):
                with suppress(OSError):
                    newest = max(newest, os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_ctime)
            if place.count(os.sep) - folder.count(os.sep) >= MOST_DEPTH:
                folders.clear()
    return newest


@contextmanager
def changed_settings(directory: CourseDirectory, **values: Any) -> Iterator[None]:
    with ExitStack() as before:
        for name, value in values.items():
            before.callback(setattr, directory, name, getattr(directory, name))
            setattr(directory, name, value)
        yield


def copy_plain_files(source: Path, target: Path, most: int) -> None:
    """Copy a folder's regular files, the smallest of each folder first, until there are ``most`` bytes.

    Links are left out, and so is what has a name that does not show, cannot be read, or written under its
    name, whatever its owner does to the folder meanwhile. Raises OSError where nothing can be written.
    """
    target.mkdir()
    entries = 0
    for place, folders, names, descriptor in os.fwalk(source):  # it follows no links
        here = target / os.path.relpath(place, source)
        entries += len(folders) + len(names)
        if entries > MOST_ENTRIES:
            return
        # Others log names as they are.
        folders[:] = filter(str.isprintable, folders)
        if len(here.relative_to(target).parts) >= MOST_DEPTH:
            folders.clear()
        sizes = []
        for name in filter(str.isprintable, names):
            with suppress(OSError):  # it has just gone
                sizes.append((os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_size, name))
        for _, name in sorted(sizes):
            try:
                content = read_plain(name, most, descriptor)
                here.mkdir(parents=True, exist_ok=True)
                (here / name).write_bytes(content)
            except (NotPlain, OSError) as error:
                if getattr(error, "errno", None) in NO_ROOM:
                    raise
            else:
                most -= len(content)
