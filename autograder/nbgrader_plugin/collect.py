"""Takes submissions out of nbgrader's exchange, a folder that students can put anything into.

nbgrader's own ``collect`` stops for everybody at one name that it cannot read, copies what a link leads to,
takes what is there only by half, and leaves half a submission behind where a disk is full.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import shutil
import stat
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeCollect
from nbgrader.utils import check_mode, parse_utc

from .reading import NotPlain, read_plain
from .submissions import MOST_ENTRIES, refusal

# The rights that nbgrader gives to a submission's folder when all of it is there.
COMPLETE = 0o777
# After so long, one with other rights was put there in another way.
MOST_SECONDS = 60
MOST_DEPTH = 10  # of folders in folders
OWN_FOLDER = ".grading"
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


@dataclass(frozen=True)
class Sent:
    """What the name of a folder in the exchange says about a submission; ``time`` is UTC."""

    student: str
    assignment: str
    time: datetime


@lru_cache(maxsize=100_000)
def sent(name: str) -> Sent | None:
    """What a folder's name in the exchange says; None where it is no submission's."""
    parts = name.rsplit("+", 3)
    if len(parts) < 3:
        return None
    try:
        return Sent(parts[0], parts[1], parse_utc(parts[2]))
    except Exception:  # dates can be wrong in many ways
        return None


class Collect(ExchangeCollect):
    """``nbgrader collect``, with a look at each submission before it is taken.

    ``only``: the names of the folders in the exchange that are looked at; all, if it is None. Afterwards,
    ``unready`` has the names of those that are just being handed in, and ``refused`` a sentence for each
    that is never taken.
    """

    only: Collection[str] | None = None

    def init_src(self) -> None:
        """Find the newest submission of each student; the newest that is not late, if that is asked for."""
        self.unready: set[str] = set()
        self.refused: dict[str, str] = {}
        if not self.coursedir.course_id:
            self.fail("No course id specified. Re-run with --course flag.")
        self.inbound_path = str(inbound(self))
        if not check_mode(self.inbound_path, read=True, execute=True):
            self.fail(f"The exchange has no folder {self.inbound_path} that this account can read.")
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for name in os.listdir(self.inbound_path) if self.only is None else self.only:
            if record := self._record(name):
                found[record["username"]].append(record)
        due = None
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook, suppress(MissingEntry):
            if self.before_duedate:
                due = gradebook.find_assignment(self.coursedir.assignment_id).duedate
        self.src_records = []
        for records in found.values():
            punctual = [record for record in records if due and record["timestamp"] <= due]
            self.src_records.append(max(punctual or records, key=lambda record: record["timestamp"]))
        for name, sentence in self.refused.items():
            self.log.warning("%s: %s", ascii(name), sentence)

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy what was handed in, without links; ``dest`` is there when all of it is."""
        own = Path(self.coursedir.root, OWN_FOLDER)
        own.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=own, prefix="taken-") as scratch:
            everything, wanted = Path(scratch, "everything"), Path(scratch, "wanted")
            copy_plain_files(Path(src), everything, 1000 * self.coursedir.max_dir_size)
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
        """A submission as nbgrader notes it, and when it ``arrived`` by the file system's clock, which no
        student sets. None where it is of somebody else, or not to be taken.
        """
        found = sent(name)
        if found is None or found.assignment != self.coursedir.assignment_id:
            return None
        if not fnmatch.fnmatchcase(found.student, self.coursedir.student_id or "*"):
            return None
        try:
            about = os.lstat(os.path.join(self.inbound_path, name))
        except OSError:  # it has just gone
            return None
        if reason := self._objection(found.student, about):
            self.refused[name] = reason
            return None
        if stat.S_IMODE(about.st_mode) & COMPLETE != COMPLETE and time.time() - about.st_ctime < MOST_SECONDS:
            self.unready.add(name)
            return None
        arrived = datetime.fromtimestamp(about.st_ctime, timezone.utc)
        return {"username": found.student, "filename": name, "timestamp": found.time, "arrived": arrived}

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
                    return (
                        f"It says that it is of {student}, but the account {account} put it there, so it was "
                        "not taken. If accounts have other names than students, set "
                        "c.ExchangeCollect.check_owner = False."
                    )
        return None


@contextmanager
def changed_settings(directory: CourseDirectory, **values: Any) -> Iterator[None]:
    """Give a course's directory other settings for a while."""
    before = {name: getattr(directory, name) for name in values}
    try:
        for name, value in values.items():
            setattr(directory, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(directory, name, value)


def inbound(exchange: ExchangeCollect) -> Path:
    """The folder in which submissions arrive."""
    return Path(exchange.root, exchange.coursedir.course_id, "inbound")


def copy_plain_files(source: Path, target: Path, most: int) -> None:
    """Copy a folder's regular files, the smallest of each folder first, until there are ``most`` bytes.

    Links are left out, and so is what cannot be read, or written under its name, whatever its owner does to
    the folder meanwhile. Raises OSError where nothing can be written.
    """
    target.mkdir()
    entries = 0
    for place, folders, names, descriptor in os.fwalk(source):  # it follows no links
        here = target / os.path.relpath(place, source)
        entries += len(folders) + len(names)
        if entries > MOST_ENTRIES:
            return
        if len(here.relative_to(target).parts) >= MOST_DEPTH:
            folders.clear()
        sizes = []
        for name in names:
            with suppress(OSError):  # it has just gone
                sizes.append((os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_size, name))
        for _, name in sorted(sizes):
            try:
                content = read_plain(name, most, descriptor)
                here.mkdir(exist_ok=True)
                (here / name).write_bytes(content)
            except (NotPlain, OSError) as error:
                if getattr(error, "errno", None) in NO_ROOM:
                    raise
            else:
                most -= len(content)
