"""What a student handed in, made safe to grade: broken notebooks, files that are none, and missing ones.

Plain nbgrader drops the grade of a student whose notebook it cannot read, and passes over a folder without
its notebook. Here both are graded: 0 points, and a feedback page that says what was wrong.
"""

import fnmatch
import glob
import logging
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde
from nbgrader.converters.base import BaseConverter
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import parse_utc, rmtree

from ..files import json_in
from . import patches
from .reading import NotPlain, UnreadableNotebook, read_notebook, read_plain, version_of_files

TIMESTAMP = "timestamp.txt"
MOST_TIMESTAMP = 100  # bytes
SECRET = "submission_secret.txt"
MOST_SECRET = 1000
MOST_ID = 128  # characters of a student's id: the gradebook has room for so many
MOST_ENTRIES = 10_000  # files and folders in a submission that are looked at
# Stands in for a notebook that cannot be read.
EXPLANATION = (patches.OWN_TEMPLATES / "unreadable.md").read_text(encoding="utf-8").rstrip()


class SubmissionExporter(NotebookExporter):
    """Reads a submission; in place of one that cannot be read it puts a page that says why."""

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[Any, dict[str, Any]]:
        path = Path(filename)
        own = patches.reads_its_own(self.parent)  # of which everything is kept
        notebook = nbformat.read(path, as_version=4) if own else read_or_explain(path, self.log)
        resources = ResourcesDict() if resources is None else resources
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        return self.from_notebook_node(notebook, resources=resources, **kw)


def read_or_explain(path: Path, log: logging.Logger) -> NotebookNode:
    """The notebook at ``path``, or a page why it cannot be read, with a note which version that was."""
    version = version_of_files(path)  # before it is read: what comes in between is graded by the next run
    try:
        notebook = read_notebook(path)
    except UnreadableNotebook as error:
        log.warning("%s: %s", path, error)
        page = new_markdown_cell(EXPLANATION.format(problem=error))
        notebook = new_notebook(cells=[page], metadata={"autograder": {"problem": str(error)}})
    notebook.metadata.setdefault("autograder", NotebookNode())["submitted"] = version
    return notebook


def problem_of(notebook: NotebookNode) -> str | None:
    """Why the submission could not be read, if it could not."""
    return notebook.metadata.get("autograder", {}).get("problem")


def init_notebooks(self: Autograde) -> None:
    """For each submission folder: the notebooks that the assignment asks for, whether they are there or not.

    It stands for nbgrader's own method, which passes over notebooks that are not there. What an earlier run
    left unfinished is taken away; nbgrader would pass over it, too. ``refused`` gets a sentence for each
    student id under which nothing is graded.
    """
    wanted = f"{self.coursedir.notebook_id}.ipynb"
    with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
        try:
            assignment = gradebook.find_assignment(self.coursedir.assignment_id)
            expected = fnmatch.filter((f"{notebook.name}.ipynb" for notebook in assignment.notebooks), wanted)
        except MissingEntry:
            expected = []
    self.notebooks = []
    self.assignments = {}
    self.refused = {}
    for folder in patches.submitted_folders(self):
        if reason := refusal(student := patches.owner(self, folder)[1]):
            self.log.error("%s", reason)
            self.refused[ascii(student)] = reason
            continue
        remove_links(self, Path(folder))
        there = glob.glob(os.path.join(glob.escape(folder), wanted))
        names = expected or list(filter(str.isprintable, map(os.path.basename, there)))  # they are logged
        if names:
            self.assignments[folder] = sorted(os.path.join(folder, name) for name in names)
    if not self.assignments and not self.refused:
        BaseConverter.init_notebooks(self)  # it raises NbGraderException, with nbgrader's own advice
    if expected and self.coursedir.notebook_id == "*":
        with only_one(Path(self.coursedir.root)) as alone:
            for folder in self.assignments if alone else ():  # somebody else may just be working on them
                graded = patches.autograded_folder(self, *patches.owner(self, folder))
                if graded.exists() and unfinished(graded, [name.removesuffix(".ipynb") for name in expected]):
                    self.log.warning("Grading was stopped before its end, so it starts again: %s", graded)
                    rmtree(str(graded))


def refusal(student: str) -> str | None:
    """Why nothing is graded under this student id, if so: ids get into pages, addresses and patterns."""
    if odd := {char for char in student if char in '<>&"`\\{}|*?[]' or not char.isprintable()}:
        why = f"has characters that no id may have ({' '.join(sorted(map(ascii, odd)))})"
    elif student != student.strip() or len(student) > MOST_ID:
        why = f"has spaces around it, or more than {MOST_ID} characters"
    else:
        return None
    name = ascii(student[:MOST_ID])
    return f"The student id {name} {why}. Nothing of this submission was graded: rename its folder."


def remove_links(self: Autograde, folder: Path) -> None:
    """Take symbolic links out of a submission: whoever opened one would see what it points to."""
    found = (Path(place, name) for place, *names in os.walk(folder) for name in chain(*names))
    for path in chain([folder], islice(found, MOST_ENTRIES)):
        with suppress(OSError):
            if path.is_symlink():
                self.log.warning("A symbolic link in a submission was removed: %s", ascii(str(path)))
                path.unlink()
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
    if next(found, None):
        self.log.warning("%s has more than %s files; the others were not looked at.", folder, MOST_ENTRIES)


def copy_time_and_secret(self: Autograde, assignment: str, student: str) -> None:
    """Take the time of a submission, and the secret by which its page is found, into its autograded folder.

    Nothing else that was handed in is copied. `nbgrader release_feedback` wants both files of everybody and
    stops where it cannot read one. What cannot be read is an empty time and a secret that nobody knows.
    """
    source = patches.submitted_folder(self, assignment, student)
    time = read_plain(source / TIMESTAMP, MOST_TIMESTAMP) if timestamp_of(self.coursedir, source) else b""
    try:
        secret = read_plain(source / SECRET, MOST_SECRET).decode("ascii")
    except (NotPlain, OSError, UnicodeError):
        secret = secrets.token_hex()
    target = patches.autograded_folder(self, assignment, student)
    target.mkdir(parents=True, exist_ok=True)
    (target / TIMESTAMP).write_bytes(time)
    (target / SECRET).write_text(secret, encoding="utf-8")


def timestamp_of(self: CourseDirectory, folder: str | Path) -> datetime | None:
    """When a submission was handed in, if its folder says so in a way that can be read.

    A second line has what the submission itself says, where that does not count.
    """
    path = Path(folder, TIMESTAMP)
    try:
        text = read_plain(path, MOST_TIMESTAMP).decode().strip()
        return parse_utc(text.split("\n")[0]) if text else None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except Exception as error:  # dates can be wrong in many ways
        self.log.error("%s says no time that can be read (%s).", path, type(error).__name__)
        return None


def time_text(moment: datetime) -> str:
    """A time (UTC), as nbgrader writes it."""
    return f"{moment.isoformat(' ', 'microseconds')} UTC"


def unfinished(folder: Path, notebooks: Iterable[str]) -> bool:
    """Whether an autograded folder lacks a notebook, or one has no mark that it was graded to the end."""
    return not all(notes_of(folder / f"{name}.ipynb").get("finished") for name in notebooks)


def notes_of(path: Path) -> dict[str, Any]:
    """What grading noted about the notebook at ``path``; nothing where it cannot be read."""
    with suppress(KeyError, TypeError, ValueError):
        return dict(json_in(path)["metadata"]["autograder"])
    return {}


@contextmanager
def only_one(root: Path, name: str = "lock") -> Iterator[bool]:
    """Whether nobody else holds this lock of the course in ``root``; nobody else can until the block ends."""
    import fcntl  # not on Windows, where only students work

    folder = root / ".grading"
    folder.mkdir(exist_ok=True)
    with (folder / name).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
