"""Grades sent to Canvas through its own interface, with a list of what would change first."""

import os
from dataclasses import dataclass
from typing import Any

from canvasapi import Canvas
from canvasapi.exceptions import CanvasException
from tqdm import tqdm
from traitlets import Bool, Integer, Unicode

from ...command_line import CommandError
from ...show import first_of
from .grades import Exporter, Points, number

TOKEN = "CANVAS_TOKEN"
EXACT = 0.005  # points


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
            course = Canvas(self.url, token).get_course(self.course)
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
