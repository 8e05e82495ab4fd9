"""An assignment's grades: read from the gradebook, written for Moodle and Canvas, or sent to Canvas."""

import csv
import io
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import canvasapi
from canvasapi.exceptions import CanvasException
from nbgrader.api import Gradebook, MissingEntry, Student
from nbgrader.plugins import ExportPlugin
from tqdm import tqdm
from traitlets import Bool, Integer, Unicode

from ...command_line import CommandError
from ...files import read_csv, write_whole
from ...nbgrader_plugin.points import exercise_of_each
from ...show import first_of, visible

ABSENT = "handed in nothing, and have no points here"
UNGRADED = "are not graded yet, and have no points here"
UNSURE = "have a test that waits for your decision; their points are those so far"
FORMULAS = "have ids that a spreadsheet takes for a formula, and are left out: enter their points yourself"
# What Canvas's own file has before the columns of the assignments; it takes a row back by these.
CANVAS_STUDENT = ("Student", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account", "Section")
TOKEN = "CANVAS_TOKEN"
EXACT = 0.005  # points

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
            self.parent.fail("%s", error)

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
        more = list(dict.fromkeys(exercises.values())) if self.by_exercise else []
        course, chosen = self.parent.coursedir, set(map(str, self.student))
        handed_in = {one.student_id: one for one in gradebook.assignment_submissions(assignment)}
        points: Points = {}
        standing_out: dict[str, list[str]] = {ABSENT: [], UNGRADED: [], UNSURE: []}
        for student in gradebook.students:
            if chosen and student.id not in chosen:
                continue
            if (submission := handed_in.get(student.id)) is None:
                folder = course.format_path(course.submitted_directory, student.id, assignment)
                standing_out[UNGRADED if Path(folder).exists() else ABSENT].append(student.id)
                continue
            of_exercise = dict.fromkeys(exercises.values(), 0.0)
            for grade in (grade for notebook in submission.notebooks for grade in notebook.grades):
                of_exercise[exercises[grade.name]] += grade.score or 0.0
            whole = max(0.0, submission.score - (submission.late_submission_penalty or 0.0))
            points[student] = [whole, *(of_exercise[name] for name in more)]
            if submission.needs_manual_grade:
                standing_out[UNSURE].append(student.id)
        for words, names in standing_out.items():
            self.warn(names, words)
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


@dataclass(frozen=True)
class Change:
    """One grade that Canvas does not have yet: whose, in which column, what is there, and what will be."""

    student: str
    column: str
    submission: Any
    before: float | None
    after: float

    def __str__(self) -> str:
        before = "—" if self.before is None else number(self.before)
        return f"{self.student:20} {self.column:30} {before:>8} → {number(self.after)}"


class CanvasUpload(Exporter):
    """Sends grades to Canvas. Without ``--CanvasUpload.really=True`` it only says what would change.

    An access token (*Account → Settings → New access token*) is taken from the variable CANVAS_TOKEN.
    """

    url = Unicode(help="where Canvas is, as in https://canvas.example.edu").tag(config=True)
    course = Integer(help="the number in the address of the course").tag(config=True)
    really = Bool(False, help="change the grades; otherwise only list the changes").tag(config=True)

    def write(self, columns: list[str], points: Points) -> None:
        """Compare, list, and send what differs. A grade that Canvas refuses does not stop the others.

        Raises CommandError at the end where some were refused.
        """
        token = os.environ.get(TOKEN, "")
        if not (token and self.url and self.course):
            options = "--CanvasUpload.url=https://… and --CanvasUpload.course=NUMBER"
            raise CommandError(f"An access token in the variable {TOKEN}, {options} are needed.")
        try:
            course = canvasapi.Canvas(self.url, token).get_course(self.course)
            changes, same, unknown = differences(course, columns, points)
        except (CanvasException, OSError, ValueError) as error:
            raise CommandError(f"Canvas at {self.url} does not show course {self.course}: {error}") from None
        for change in changes:
            print(change)
        self.warn(unknown, "have points and are not on Canvas")
        self.log.info("%d grades differ, %d are the same", len(changes), same)
        if not self.really:
            self.log.info("Nothing was changed. To send them: the same with --CanvasUpload.really=True")
            return
        refused = send(changes)
        self.log.info("%d grades were sent", len(changes) - len(refused))
        if refused:
            first = f"Canvas refused {len(refused)} grades; the same command tries these again."
            raise CommandError("\n  ".join([first, *refused]))


def differences(course: Any, columns: list[str], points: Points) -> tuple[list[Change], int, list[str]]:
    """What is to be changed on Canvas, how many grades are there as they should be, and who is not there.

    A student is found by login, then by SIS id, in any letters. Raises CommandError where Canvas lacks
    an assignment, and CanvasException or OSError where it cannot be read.
    """
    there = {one.name: one for one in course.get_assignments()}
    users: dict[str, int] = {}
    for user in course.get_users(enrollment_type=["student"]):
        for key in ("sis_user_id", "login_id"):  # the login counts more
            if name := getattr(user, key, None):
                users[str(name).casefold()] = user.id
    if lacking := [name for name in columns if name not in there]:
        known = first_of(sorted(there)) or "none"
        raise CommandError(f"Canvas has no assignment {lacking[0]!r}. Make it there; it has: {known}.")
    found = {name: {one.user_id: one for one in there[name].get_submissions()} for name in columns}
    changes, same, unknown = [], 0, []
    for student, own in points.items():
        user = users.get(student.id.casefold())
        if user is None:
            unknown.append(student.id)
            continue
        for column, value in zip(columns, own, strict=True):
            if submission := found[column].get(user):
                before, after = getattr(submission, "score", None), round(value, 2)
                if before is not None and abs(before - after) < EXACT:
                    same += 1
                else:
                    changes.append(Change(student.id, column, submission, before, after))
    return changes, same, unknown


def send(changes: list[Change]) -> list[str]:
    """Send grades one at a time; those that Canvas refused or does not show afterwards, with the reason."""
    refused = []
    for change in tqdm(changes, unit="grade", desc="sending", disable=None):
        why = None
        try:
            shown = change.submission.edit(submission={"posted_grade": number(change.after)})
            score = getattr(shown, "score", None)
            if score is None or abs(score - change.after) >= EXACT:
                why = f"Canvas shows {'no grade' if score is None else number(score)} afterwards"
        except (CanvasException, OSError) as error:
            why = str(error) or repr(error)
        refused += [f"{change.student}, {change.column}: {why}"] if why else []
    return refused


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
    """The text, with a sign wherever a spreadsheet would see a formula begin, also one that takes semicolons
    for the ends of fields; what does not show is written out.
    """
    return re.sub(r"(^|[;\t\n\r])(\s*[=+\-@＝＋－＠])", r"\1'\2", visible(text))


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
