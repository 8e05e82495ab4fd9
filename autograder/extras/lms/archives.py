"""Submissions in the archives that learning platforms make: whose each file is.

For ``nbgrader zip_collect``, which unpacks an archive and asks its collector about each file in it.
"""

import re
import shutil
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.plugins import ExtractorPlugin, FileNameCollectorPlugin
from nbgrader.utils import unzip
from traitlets import Set, Unicode

from ...command_line import CommandError
from ...nbgrader_plugin.submissions import SECRET, TIMESTAMP
from .grades import names_in, read_canvas
from .unpack import unpack

# What a browser, or Canvas for a second upload, adds to a notebook's name.
COPY = re.compile(r"(?: ?\(\d+\)|-\d+)(?=\.ipynb$)")
# Moodle leaves these out of file names.
LEFT_OUT = re.compile(r"[\x00-\x1f&<>\"`|':\\/,]")


class Extractor(ExtractorPlugin):
    """Unpacks a platform's archive, and then the archives in it, which students handed in.

    nbgrader's own stops for everybody at the first of those that is broken, and unpacks them however large
    they become.
    """

    def unpacks(self, path: Path) -> bool:
        """Whether a student's file is an archive: ``data.csv.gz`` is none."""
        return path.suffix in self.zip_ext and (path.suffix != ".gz" or path.stem.endswith(".tar"))

    def extract(self, archive_path: str, extracted_path: str) -> None:
        given, self.unpacked = Path(archive_path), Path(extracted_path)
        for path in _files(given):
            place = self.unpacked / path.relative_to(given).parent
            place.mkdir(parents=True, exist_ok=True)
            if path.suffix not in self.zip_ext:
                shutil.copy(path, place)
                continue
            try:
                if not _begins_at_its_first_byte(path):
                    raise ValueError("its end is missing")
                unzip(str(path), str(place), zip_ext=self.zip_ext, create_own_folder=True)
            except Exception as error:
                self.parent.fail("%s cannot be unpacked. Download it once more. (%s)", path, error)
        for path in filter(self.unpacks, list(_files(self.unpacked))):
            try:
                unpack(path, path.parent / path.name.removesuffix(path.suffix).removesuffix(".tar"))
            except Exception as error:  # a student wrote it, so it can be anything
                self.log.error("%r cannot be unpacked and is left out: %s", str(path), error)
        for path in _files(self.unpacked):  # nbgrader logs their names as they are
            if not str(path.relative_to(self.unpacked)).isprintable():
                self.log.error("A file with a name that does not show was left out: %r", str(path))
                path.unlink()


class Archive(FileNameCollectorPlugin):
    """What the platforms share. ``named`` is how one calls a student's file, or the folder that has it."""

    named: re.Pattern[str]
    _taken = Set()  # whose files, and their names

    def student(self, who: str) -> str | None:
        """The id of the student whom the platform means; None, and a sentence in the log, if none."""
        raise NotImplementedError

    def collect(self, submitted_file: str) -> dict[str, str] | None:
        """Whose file this is, and its name; None, with a sentence in the log, for one that is not taken."""
        path, extractor = Path(submitted_file), self.parent.extractor_plugin_inst
        parts = path.relative_to(extractor.unpacked).parts
        if extractor.unpacks(path) or "__MACOSX" in parts or path.name.startswith("."):
            return None
        if not (found := self._of_the_platform(path)) or not (student := self.student(found["who"])):
            return None
        name = found["file"] if found.string == path.name else path.name
        first = COPY.sub("", name)
        if not path.with_name(path.name.replace(name, first)).exists():  # else it is no copy of the first
            name = first
        if not name or name in (TIMESTAMP, SECRET):  # nbgrader would believe these two
            return None
        if (student, name) in self._taken:
            self.log.error("%s handed in more than one %s; this one is left out: %s", student, name, path)
            return None
        self._taken.add((student, name))
        return {"student_id": student, "file_id": name}

    def _of_the_platform(self, path: Path) -> re.Match[str] | None:
        """What the platform calls a file: the first such name, as what is in it was named by a student."""
        parts = path.relative_to(self.parent.extractor_plugin_inst.unpacked).parts
        return next((match for part in parts if (match := self._read(part))), None)

    def _read(self, name: str) -> re.Match[str] | None:
        """The parts of a name, if the platform gave it and it means one; a sentence in the log if several."""
        return self.named.fullmatch(name)

    def _students(self) -> dict[str, str]:
        """The students in the gradebook: id -> first and last name."""
        with Gradebook(self.parent.coursedir.db_url) as gradebook:
            return {one.id: f"{one.first_name or ''} {one.last_name or ''}" for one in gradebook.students}


class MoodleArchive(Archive):
    """What *Download all submissions* gives, in folders or not. Moodle names files by the students' names."""

    named = re.compile(r"(?P<who>.+?)_(?P<number>\d+)_assignsubmission_file_?(?P<file>.*)")

    @cached_property
    def _called(self) -> Mapping[tuple[str, ...], tuple[list[str], set[str]]]:
        """By a name its students, and Moodle's numbers of them: on some sites people choose their names."""
        found: dict[tuple[str, ...], tuple[list[str], set[str]]] = defaultdict(lambda: ([], set()))
        for student, name in self._students().items():
            found[words_of(name)][0].append(student)
        files = _files(self.parent.extractor_plugin_inst.unpacked)
        for match in filter(None, map(self._of_the_platform, files)):
            found[words_of(match["who"])][1].add(match["number"])
        return found

    def student(self, who: str) -> str | None:
        found, numbers = self._called[words_of(who)]
        if len(found) == 1 and len(numbers) < 2:
            return found[0]
        why = f"{len(found)} students in the gradebook have" if found else "No student in the gradebook has"
        if len(found) == 1:
            why = f"{len(numbers)} people on Moodle have"
        place = f"submitted/ID/{self.parent.coursedir.assignment_id}/"
        advice = f"Put it into {place} yourself, or mend the names with `nbgrader db student import`."
        self.log.error(f"{why} the name {who!r}, so what this name handed in is left out. {advice}")
        return None


class CanvasArchive(Archive):
    """What *Download Submissions* gives. Canvas names files by numbers, which its file of grades has, too."""

    # It begins after a student's name. The folder of an archive that is called ".zip" has nothing after it.
    named = re.compile(r"(?<!_LATE)(?=_(?:LATE_)?(?P<who>\d+)_\d+_(?P<file>.*))")
    file = Unicode("canvas.csv", help="what Grades → Export gave").tag(config=True)

    @cached_property
    def _rows(self) -> dict[str, dict[str, str]]:
        """What Canvas's file says of each student, by number."""
        try:
            rows = read_canvas(Path(self.file))
        except CommandError as error:
            self.parent.fail("%s", error)
        return {row["ID"].strip(): row for row in rows}

    @cached_property
    def _ids(self) -> dict[str, str]:
        return {student.casefold(): student for student in self._students()}

    def _read(self, name: str) -> re.Match[str] | None:
        """People and files may have numbers in their names: then the name must be that of the number."""
        found = [*self.named.finditer(name)]
        if len(found) > 1:
            names = {number: _letters(row["Student"]) for number, row in self._rows.items()}
            found = [one for one in found if names.get(one["who"]) == _letters(name[: one.start()])]
            if len(found) != 1:
                self.log.error("It cannot be told whose %r is, so it is left out.", name)
                return None
        return found[0] if found else None

    def student(self, who: str) -> str | None:
        names = names_in(self._rows.get(who, {}))
        if student := next((self._ids[name] for name in names if name in self._ids), None):
            return student
        what = f"has no login or SIS id in {self.file} that a student in the gradebook has"
        advice = "Enter the student, or export the file from Canvas again."
        self.log.error(f"Canvas's user {who} {what}, and is left out. {advice}")
        return None


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _begins_at_its_first_byte(archive: Path) -> bool:
    """False for a zip file without its end that has another one within, which zipfile takes for the whole."""
    if not zipfile.is_zipfile(archive):
        return True
    with zipfile.ZipFile(archive) as content:
        return min((one.header_offset for one in content.infolist()), default=0) == 0


def _letters(name: str) -> str:
    """A name as far as Canvas's file names keep it."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))


def words_of(name: str) -> tuple[str, ...]:
    """A name in whatever order and letters it is written, as far as Moodle's file names keep it."""
    plain = LEFT_OUT.sub("", unicodedata.normalize("NFKC", name)).replace("_", " ")
    return tuple(sorted(plain.casefold().split()))
