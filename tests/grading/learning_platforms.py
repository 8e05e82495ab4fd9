"""Stand-ins for learning platforms: they check what they are sent, as the real ones do, and keep grades."""

import csv
import io
import json
import re
import urllib.parse
import zipfile
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from programs import Quiet, serving

TOKEN = "a token"
ABOUT = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


@dataclass
class CanvasCourse:
    """Course 7 on a Canvas: people and assignments by number, and scores by (assignment, person)."""

    people: dict[int, dict[str, str]]
    assignments: dict[int, tuple[str, float]]
    scores: dict[tuple[int, int], float] = field(default_factory=dict)
    refuses: set[int] = field(default_factory=set)  # people whose grades cannot be changed
    changed: list[tuple[int, int, float]] = field(default_factory=list)

    def read(self, path: str) -> Any:
        """What a GET of a path gives."""
        parts = path.split("/")
        if parts == ["courses", "7"]:
            return {"id": 7, "name": "Fast PyTorch"}
        if parts == ["courses", "7", "assignments"]:
            return [
                {"id": number, "course_id": 7, "name": name, "points_possible": most}
                for number, (name, most) in self.assignments.items()
            ]
        if parts == ["courses", "7", "search_users"]:
            return [{"id": number, **about} for number, about in self.people.items()]
        assert parts[:3] == ["courses", "7", "assignments"] and parts[4:] == ["submissions"], path
        return [self._submission(int(parts[3]), person) for person in self.people]

    def change(self, path: str, fields: dict[str, str]) -> tuple[int, Any]:
        """What a PUT of a path gives: the status, and the submission as it is now."""
        parts = path.split("/")
        assert parts[:3] == ["courses", "7", "assignments"] and parts[4] == "submissions", path
        assignment, person = int(parts[3]), int(parts[5])
        assert fields.keys() == {"submission[posted_grade]"}, fields
        score = float(fields["submission[posted_grade]"])
        assert 0 <= score <= self.assignments[assignment][1], "beyond the points possible"
        if person in self.refuses:
            return 403, {"status": "unauthorized", "errors": [{"message": "the grading period is closed"}]}
        self.scores[assignment, person] = score
        self.changed.append((assignment, person, score))
        return 200, self._submission(assignment, person)

    def _submission(self, assignment: int, person: int) -> dict[str, Any]:
        score = self.scores.get((assignment, person))
        about = {"id": 1000 * assignment + person, "assignment_id": assignment, "course_id": 7}
        return about | {"user_id": person, "score": score, "grade": score and str(score)}


class Handler(Quiet):
    course: CanvasCourse

    def do_GET(self) -> None:
        self._answer(lambda path: (200, self.course.read(path)))

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._answer(lambda path: self.course.change(path, dict(urllib.parse.parse_qsl(body))))

    def _answer(self, found: Callable[[str], tuple[int, Any]]) -> None:
        status, content = 401, {"errors": [{"message": "Invalid access token."}]}
        if self.headers["Authorization"] == f"Bearer {TOKEN}":
            status, content = found(urllib.parse.urlsplit(self.path).path.removeprefix("/api/v1/"))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())


def canvas(course: CanvasCourse) -> AbstractContextManager[str]:
    """Serve a course; gives Canvas's address."""
    return serving(type("OfThisCourse", (Handler,), {"course": course}))


def exported_by_canvas(course: CanvasCourse, delimiter: str = ",") -> str:
    """The file of *Grades → Export*: a line with the points possible, and Canvas's own test student last."""
    titles = [f"{name} ({number})" for number, (name, _) in course.assignments.items()]
    most = [str(points) for _, points in course.assignments.values()]
    rows = [[*ABOUT, *titles], ["    Points Possible", "", "", "", "", *most]]
    for number, person in course.people.items():
        scores = [course.scores.get((assignment, number), "") for assignment in course.assignments]
        known = [person["name"], str(number), person.get("sis_user_id", ""), person["login_id"], "Lab 1"]
        rows.append(known + [str(score) for score in scores])
    rows.append(["Student, Test", "999", "", "", "Lab 1"] + [""] * len(titles))
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue()


def imported_by_canvas(course: CanvasCourse, text: str) -> None:
    """*Grades → Import*: what it refuses is an error here. An empty field changes nothing.

    Where it knows the ID, it looks at no other column about a student.
    """
    header, *rows = csv.reader(io.StringIO(text))
    assert {"Student", "ID", "Section"} <= set(header)
    numbers = {f"{name} ({number})": number for number, (name, _) in course.assignments.items()}
    for title in header:
        if title not in {*ABOUT, *numbers}:  # Canvas asks, and makes a new one
            numbers[title] = max(course.assignments) + 1
            course.assignments[numbers[title]] = title, 1000.0
    for row in rows:
        fields = dict(zip(header, row, strict=True))
        person = int(fields["ID"])
        for title, number in numbers.items():
            if fields.get(title):
                course.scores[number, person] = float(fields[title])


def imported_by_moodle(people: set[str], most: dict[str, float], text: str) -> dict[str, dict[str, float]]:
    """*Grades → Import → CSV file*, mapped by user name: what it refuses is an error here, as is an empty
    field, which would delete a grade.
    """
    header, *rows = csv.reader(io.StringIO(text))
    assert header[:2] == ["Username", "Email address"] and set(header[4:]) == most.keys()
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        fields = dict(zip(header, row, strict=True))
        assert fields["Username"] in people and fields["Username"] not in found
        found[fields["Username"]] = {name: float(fields[name]) for name in most}
        assert all(0 <= found[fields["Username"]][name] <= most[name] for name in most)
    return found


# Whose file it is, what the student called it, and what is in it.
Upload = tuple[str, str, bytes]


def archive_of_moodle(path: Path, uploads: Iterable[Upload], *, folders: bool = True) -> None:
    """*Download all submissions*: students by their full names, with a number that is used nowhere else."""
    numbers: dict[str, int] = {}
    with zipfile.ZipFile(path, "w") as archive:
        for name, file, content in uploads:
            known = re.sub(r"[&<>\"`|':\\\\/]", "", name).replace("_", " ")  # as its PARAM_FILE
            number = numbers.setdefault(name, 51000 + len(numbers))
            own = f"{known}_{number}_assignsubmission_file_"
            archive.writestr(f"{own}/{file}" if folders else f"{own}{file}", content)


def archive_of_canvas(path: Path, course: CanvasCourse, uploads: Iterable[Upload], late=()) -> None:
    """*Download Submissions*: students by their sortable names without spaces, and by their numbers."""
    numbers = {about["login_id"]: number for number, about in course.people.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for attachment, (login, file, content) in enumerate(uploads, 7001):
            number = numbers[login]
            name = re.sub(r"[^-\w]", "", course.people[number]["name"]).lower()
            parts = [name, *(["LATE"] if login in late else []), str(number), str(attachment), file]
            archive.writestr("_".join(parts), content)
