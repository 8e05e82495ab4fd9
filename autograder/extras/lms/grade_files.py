"""Grades as files that Moodle and Canvas import."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path

from traitlets import Unicode

from ...files import read_csv, write_whole
from ...show import first_of
from .grades import Exporter, ExportError, Grades

# What Canvas's own file has before the columns of the assignments; it takes a row back by these.
CANVAS_STUDENT = ("Student", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account", "Section")


class Moodle(Exporter):
    """A file for *Grades → Import → CSV file*, by default ``moodle.csv``: a line for each with points."""

    def write(self, grades: Grades) -> None:
        """Write the file. Who has no points is left out: an empty field would delete a grade on Moodle."""
        rows = [
            [one.id, one.email or "", one.first_name or "", one.last_name or "", *map(number, points)]
            for one, points in grades.points.items()
        ]
        to = Path(self.to or "moodle.csv")
        write_csv(to, [["Username", "Email address", "First name", "Last name", *grades.columns], *rows])
        self.log.info("%d grades are in %s", len(rows), to)


class Canvas(Exporter):
    """A file for *Grades → Import*, by default ``upload.csv``: Canvas's own file with the grades in it."""

    file = Unicode("canvas.csv", help="what Grades → Export gave").tag(config=True)

    def write(self, grades: Grades) -> None:
        """Write the file. Raises ExportError where Canvas's file is missing, or is none."""
        filled, unknown, missing = fill_in(read_canvas(Path(self.file)), grades)
        to = Path(self.to or "upload.csv")
        write_csv(to, filled)
        self.log.info("%d grades are in %s", len(filled) - 1, to)
        for names, words in (
            (unknown, "have points and are not in %s"),
            (missing, "in %s have no points and are left out"),
        ):
            if names:
                self.log.warning(f"%d {words}: %s", len(names), self.file, first_of(names))


def read_canvas(path: Path) -> list[dict[str, str]]:
    """The rows of Canvas's own file, with or without a byte order mark, with commas or semicolons."""
    try:
        rows = list(read_csv(path))
    except FileNotFoundError:
        raise ExportError(
            f"There is no {path}. Canvas makes it: choose Grades → Export there, and give the file's name "
            "with --Canvas.file=… (for an archive: --CanvasArchive.file=…)"
        ) from None
    except UnicodeDecodeError:
        raise ExportError(f"{path} is not in UTF-8. Export it from Canvas again.") from None
    if not rows or not {"Student", "ID"} <= rows[0].keys():
        raise ExportError(f"{path} is not what Canvas exports: it needs the columns Student and ID.")
    return rows


def names_in(row: Mapping[str, str]) -> list[str]:
    """By what a student in Canvas's file is found here: by login, then by SIS id, capital letters or not."""
    found = ((row.get(key) or "").strip().casefold() for key in ("SIS Login ID", "SIS User ID"))
    return list(filter(None, found))


def fill_in(rows: list[dict[str, str]], grades: Grades) -> tuple[list[list[str]], list[str], list[str]]:
    """A table for Canvas: its header, and a row for everybody with points. Then who of ours is not there, and
    who is there and has no points.
    """
    about = [name for name in CANVAS_STUDENT if name in rows[0]]
    ours = {one.id.casefold(): (one.id, points) for one, points in grades.points.items()}
    table, missing = [about + [known_column(rows[0], name) for name in grades.columns]], []
    for row in rows:
        if own := next((name for name in names_in(row) if name in ours), None):
            table.append([row[name] or "" for name in about] + list(map(number, ours.pop(own)[1])))
        else:  # without names it is the line with the most points, or Canvas's test student
            missing += names_in(row)[:1]
    return table, sorted(student for student, _ in ours.values()), sorted(missing)


def known_column(row: Mapping[str, str], name: str) -> str:
    """Canvas's own title for a column, which has a number; for a new one the name alone."""
    own = re.compile(rf"{re.escape(name)} \(\d+\)")
    return next((title for title in row if title and own.fullmatch(title.strip())), name)


def number(value: float) -> str:
    """Points as both platforms read them."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def write_csv(path: Path, rows: list[list[str]]) -> None:
    """Write all of a table, or nothing."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    write_whole(path, text.getvalue())
