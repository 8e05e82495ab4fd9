"""An assignment's grades, read from the gradebook, and files of them that Moodle and Canvas import."""

import csv
import io
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry, Student
from nbgrader.plugins import ExportPlugin
from traitlets import Bool, Unicode

from ...command_line import CommandError
from ...files import read_csv, write_whole
from ...nbgrader_plugin.points import exercise_of_each
from ...show import first_of

REMARKS = {
    "absent": "handed in nothing, and have no points here",
    "ungraded": "are not graded yet, and have no points here",
    "unsure": "have a test that waits for your decision; their points are those so far",
}
FORMULAS = "have ids that a spreadsheet takes for a formula, and are left out: enter their points yourself"
# What Canvas's own file has before the columns of the assignments; it takes a row back by these.
CANVAS_STUDENT = ("Student", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account", "Section")


# Who has points, and how many in each column: in the assignment, less what lateness cost, and in exercises.
Points = dict[Student, list[float]]


class Exporter(ExportPlugin):
    """What the exporters share: which assignment, whose grades, and the columns."""

    by_exercise = Bool(False, help="one more column for each exercise").tag(config=True)

    def export(self, gradebook: Gradebook) -> None:
        """Called by ``nbgrader export``; ends it with one sentence where that is not possible."""
        try:
            self.write(*self.grades(gradebook))
        except (CommandError, OSError) as error:
            self.log.error("%s", error)
            sys.exit(1)

    def write(self, columns: list[str], points: Points) -> None:
        """Export the grades. Raises CommandError."""
        raise NotImplementedError

    def save(self, default: str, head: list[str], rows: list[list[str]]) -> None:
        to, text = Path(self.to or default), io.StringIO()
        csv.writer(text).writerows([head, *rows])
        write_whole(to, text.getvalue())
        self.log.info("%d grades are in %s", len(rows), to)

    def warn(self, students: Iterable[str], words: str) -> None:
        if names := sorted(students):
            self.log.warning("%d %s: %s", len(names), words, first_of(names))

    def grades(self, gradebook: Gradebook) -> tuple[list[str], Points]:
        """The columns and points that the command line asks for; who stands out is named in the log.

        Raises CommandError unless it names one assignment, and the gradebook knows it.
        """
        known = ", ".join(one.name for one in gradebook.assignments) or "none"
        if len(self.assignment) != 1:
            raise CommandError(f"Name one, as in --assignment \"['NAME']\". The gradebook has: {known}.")
        (assignment,) = map(str, self.assignment)
        try:
            exercises = exercise_of_each(gradebook.find_assignment(assignment))
        except MissingEntry:
            raise CommandError(f"There is no assignment {assignment!r}, but {known}.") from None
        course, chosen = self.parent.coursedir, set(map(str, self.student))
        points: Points = {}
        standing_out: dict[str, list[str]] = {kind: [] for kind in REMARKS}
        for student in gradebook.students:
            if chosen and student.id not in chosen:
                continue
            try:
                submission = gradebook.find_submission(assignment, student.id)
            except MissingEntry:
                folder = course.format_path(course.submitted_directory, student.id, assignment)
                standing_out["ungraded" if Path(folder).exists() else "absent"].append(student.id)
                continue
            of_exercise = dict.fromkeys(exercises.values(), 0.0)
            for grade in (grade for notebook in submission.notebooks for grade in notebook.grades):
                of_exercise[exercises[grade.name]] += grade.score or 0.0
            whole = max(0.0, submission.score - (submission.late_submission_penalty or 0.0))
            points[student] = [whole, *(of_exercise.values() if self.by_exercise else ())]
            if submission.needs_manual_grade:
                standing_out["unsure"].append(student.id)
        for kind, names in standing_out.items():
            self.warn(names, REMARKS[kind])
        more = dict.fromkeys(exercises.values()) if self.by_exercise else ()
        return [assignment, *(f"{assignment}: {name}" for name in more)], points


class Moodle(Exporter):
    """A file for *Grades → Import → CSV file*, by default ``moodle.csv``: a line for each with points."""

    def write(self, columns: list[str], points: Points) -> None:
        """Write the file. Who has no points is left out: an empty field would delete a grade on Moodle.

        So is who has a user name, by which Moodle knows people, that is a formula for a spreadsheet.
        """
        rows = []
        for one, own in points.items():
            texts = [no_formula(text or "") for text in (one.id, one.email, one.first_name, one.last_name)]
            if texts[0] == one.id:
                rows.append([*texts, *map(number, own)])
        self.warn((one.id for one in points if no_formula(one.id) != one.id), FORMULAS)
        self.save("moodle.csv", ["Username", "Email address", "First name", "Last name", *columns], rows)


class Canvas(Exporter):
    """A file for *Grades → Import*, by default ``upload.csv``: Canvas's own file with the grades in it."""

    file = Unicode("canvas.csv", help="what Grades → Export gave").tag(config=True)

    def write(self, columns: list[str], points: Points) -> None:
        """Write the file. Raises CommandError where Canvas's file is missing, or is none."""
        rows = read_canvas(Path(self.file))
        about = [name for name in CANVAS_STUDENT if name in rows[0]]
        table, missing = [], list[str]()
        ours = {one.id.casefold(): (one.id, own) for one, own in points.items()}
        for row in rows:
            if own := next((name for name in names_in(row) if name in ours), None):
                # Canvas takes a row back by its ID, whatever the other columns say.
                texts = [row[name] or "" if name == "ID" else no_formula(row[name] or "") for name in about]
                table.append(texts + list(map(number, ours.pop(own)[1])))
            else:  # without names it is the line with the most points, or Canvas's test student
                missing += names_in(row)[:1]
        # Canvas's own title for a column ends with a number; a new one has the name alone.
        titles = {re.sub(r" \(\d+\)$", "", title.strip()): title for title in rows[0] if title}
        self.save("upload.csv", [*about, *(titles.get(name, name) for name in columns)], table)
        self.warn((student for student, _ in ours.values()), f"have points and are not in {self.file}")
        self.warn(missing, f"in {self.file} have no points and are left out")


def read_canvas(path: Path) -> list[dict[str, str]]:
    """The rows of Canvas's own file, with or without a byte order mark, with commas or semicolons."""
    try:
        rows = list(read_csv(path))
    except FileNotFoundError:
        how = "with --Canvas.file=… (for an archive: --CanvasArchive.file=…)"
        advice = f"Canvas makes it: choose Grades → Export there, and give the file's name {how}"
        raise CommandError(f"There is no {path}. {advice}") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not in UTF-8. Export it from Canvas again.") from None
    if not rows or not {"Student", "ID"} <= rows[0].keys():
        raise CommandError(f"{path} is not what Canvas exports: it needs the columns Student and ID.")
    return rows


def names_in(row: Mapping[str, str]) -> list[str]:
    """By what a student in Canvas's file is found here: by login, then by SIS id, capital letters or not."""
    found = ((row.get(key) or "").strip().casefold() for key in ("SIS Login ID", "SIS User ID"))
    return list(filter(None, found))


def no_formula(text: str) -> str:
    """The text, with a sign before it that lets no spreadsheet take it for a formula, if one would."""
    return f"'{text}" if text.lstrip().startswith(tuple("=+-@＝＋－＠")) else text


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
