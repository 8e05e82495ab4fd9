"""The course as nbgrader sees it, opened once for a whole class: settings, submissions, what is to do."""

import errno
import json
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.apps import AutogradeApp
from nbgrader.converters import NbGraderException
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from tornado.log import app_log
from traitlets import TraitError

from ..files import json_in, write_whole
from ..nbgrader_plugin.entries import TABLE, read_table
from ..nbgrader_plugin.execute import RunEveryCell
from ..nbgrader_plugin.patches import autograded_folder, owner
from ..nbgrader_plugin.reading import version_of_files
from ..nbgrader_plugin.restore import original_cells, version_of_tests
from ..nbgrader_plugin.submissions import notes_of, only_one
from ..show import did_you_mean
from .gradebook import GradingError, OpenGradebook
from .grader import Grader, Prepared, Ran, SubmissionError

SETTINGS = "nbgrader_config.py"
# What no other submission would survive either.
HOPELESS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}


class Reason(str, Enum):
    """Why a submission is graded, or graded again, in words that can stand after "because"."""

    NOT_GRADED = "it is not graded yet"
    NEWER = "something newer was handed in"
    OTHER_FILES = "the submitted files changed"
    OTHER_TIME = "the time in timestamp.txt changed"
    OTHER_TESTS = "the tests or points changed"
    FORCED = "--force was given"

    __str__ = str.__str__


@dataclass(frozen=True)
class Submission:
    """What one student handed in for an assignment."""

    student: str
    folder: Path


class Course(AbstractContextManager["Course"]):
    """nbgrader's settings in the current folder, read the way nbgrader reads them.

    ``write``: the gradebook must be writable. Raises GradingError where there are no settings, or none that
    can be used.
    """

    shuffled = True  # so that the first submissions tell how long the others will take

    def __init__(self, assignment: str, db_url: str | None = None, *, write: bool = True) -> None:
        self.assignment = assignment
        self.directory = (app := _load(db_url)).coursedir
        self.directory.assignment_id = assignment
        self.root = Path(self.directory.root)
        self.log = self._note(".log")  # nbgrader's errors, with their tracebacks
        for source in (app.log, app_log, logging.getLogger("sqlalchemy")):
            source.handlers, source.propagate = [_Log(self.log, delay=True)], False
        try:
            read_table(self.root / TABLE)  # or everybody would be refused, one by one
            self.grader = Grader(coursedir=self.directory, parent=app)
            step = RunEveryCell(parent=self.grader)
            self.db_url = self.directory.db_url
            self.gradebook = OpenGradebook(self.db_url, write=write)
            self.limits = step.limits()
            self.without_sandbox = step.without_sandbox
        except TraitError as error:
            raise GradingError(f"{SETTINGS} has a setting that nbgrader refuses: {error} Mend it.") from None

    def __exit__(self, *_: object) -> None:
        self.gradebook.close()

    def open_again(self) -> None:
        """A new connection to the gradebook in place of one that may be lost. Raises GradingError."""
        self.gradebook.close()
        self.gradebook = OpenGradebook(self.db_url)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other grade commands out of this course. Raises GradingError if one is at work."""
        with only_one(self.root) as alone:
            if not alone:
                raise GradingError(f"Another grade command is at work in {self.root}. Wait, or stop it.")
            yield

    @contextmanager
    def opened(self) -> Iterator[Gradebook]:
        """nbgrader's gradebook on the one connection; what is not committed there is undone."""
        with self.gradebook.shared(), Gradebook(self.db_url) as gradebook:
            yield gradebook

    def submissions(self) -> list[Submission]:
        """All submissions of the assignment; ``grader.refused`` has a sentence for each student id that is
        refused, as ASCII. Raises GradingError if the assignment is unknown or nobody handed in.
        """
        with self.opened() as gradebook:
            require_known(self.assignment, [known.name for known in gradebook.assignments])
            try:
                self.grader.init_notebooks()
            except NbGraderException:
                where = self.directory.format_path(self.directory.submitted_directory, "*", self.assignment)
                advice = f"Run `nbgrader collect {self.assignment}` (or `nbgrader zip_collect`) first."
                words = f"Nobody has handed in {self.assignment}: there is no {where}. {advice}"
                raise GradingError(words) from None
        excluded = (self.directory.student_id_exclude or "").split(",")
        folders = sorted(self.grader.assignments)
        found = [Submission(owner(self.grader, folder)[1], Path(folder)) for folder in folders]
        return [submission for submission in found if submission.student not in excluded]

    def reason(self, submission: Submission, since: str = "") -> Reason | None:
        """Why a submission is to be graded; None where its grade is what grading it would give.

        ``since``: a grade from before that time does not count.
        """
        folder = self.autograded(submission.student)
        notes = {name: notes_of(folder / f"{name}.ipynb") for name in self.versions}
        if not all(note.get("finished") for note in notes.values()):
            return Reason.NOT_GRADED
        new, old = map(self.directory.get_existing_timestamp, (submission.folder, folder))
        if new and old and new > old:
            return Reason.NEWER
        for name, note in notes.items():
            if note.get("submitted") != version_of_files(submission.folder / f"{name}.ipynb"):
                return Reason.OTHER_FILES
        if new and new != old:
            return Reason.OTHER_TIME
        if any(note.get("tests") != self.versions[name] for name, note in notes.items()):
            return Reason.OTHER_TESTS
        return Reason.FORCED if any(str(note["finished"]) < since for note in notes.values()) else None

    @cached_property
    def due(self) -> datetime | None:
        """When the assignment is due (UTC)."""
        with self.opened() as gradebook:
            return gradebook.find_assignment(self.assignment).duedate

    def forced_since(self, students: Iterable[str]) -> str:
        """Since when ``--force`` grades these students (none: all) again, until ``forced_to_the_end``."""
        wanted, before = sorted(students), json_in(self._note(".forced.json"))
        if before.get("students") == wanted and "since" in before:
            return str(before["since"])
        since = datetime.now(timezone.utc).isoformat(timespec="microseconds")
        write_whole(self._note(".forced.json"), json.dumps({"students": wanted, "since": since}))
        return since

    def forced_to_the_end(self) -> None:
        self._note(".forced.json").unlink(missing_ok=True)

    def autograded(self, student: str) -> Path:
        return autograded_folder(self.grader, self.assignment, student)

    def autograded_notebooks(self, student: str) -> list[NotebookNode]:
        """A student's autograded notebooks, which are not looked over."""
        paths = sorted(self.autograded(student).glob("*.ipynb"))
        return [nbformat.v4.reads(path.read_text(encoding="utf-8")) for path in paths]

    @cached_property
    def versions(self) -> dict[str, str]:
        """The assignment's notebooks by their names, each with the version of its tests."""
        with self.opened() as gradebook:
            return {
                notebook.name: version_of_tests(original_cells(notebook).values())
                for notebook in gradebook.find_assignment(self.assignment).notebooks
            }

    def read(self, submission: Submission) -> list[Prepared]:
        """The assignment's notebooks in a submission, with their cells in order. Raises as ``explained``."""
        paths = [submission.folder / f"{name}.ipynb" for name in self.versions]
        with self.explained(submission.student):
            return list(map(self.grader.read, paths))

    def save(self, student: str, ran: Ran) -> None:
        """Let nbgrader grade one student's submission, whose cells were run. Raises as ``explained``."""
        with self.explained(student):
            self.grader.grade(student, ran, self.gradebook.commit)

    @contextmanager
    def explained(self, student: str) -> Iterator[None]:
        """Share the gradebook; raise what goes wrong with a submission in words for the instructor:
        SubmissionError if it fails for this one, GradingError if for all, GradebookAway if that may pass.
        """
        try:
            with self.gradebook.shared():
                yield
        except (GradingError, SubmissionError):
            raise
        except Exception as error:  # whatever it is, the others are still to be graded
            self.grader.log.exception("The submission of %s", ascii(student))
            cause: BaseException | None = error
            while cause is not None:  # nbgrader wraps some of the database's errors
                if isinstance(cause, DBAPIError) and not isinstance(cause, (IntegrityError, DataError)):
                    raise self.gradebook.trouble(cause) from None
                cause = cause.__cause__ or cause.__context__
            if isinstance(error, OSError) and error.errno in HOPELESS:
                advice = "Make room on the disk, or give this account the right to write there."
                words = f"The grades of {student} cannot be written: {error}. {advice}"
                raise GradingError(words, again=True) from None
            raise SubmissionError(f"nbgrader failed: {error!r} (see {self.log})") from None

    def record(self, data: dict[str, Any] | None = None) -> dict[str, Any]:
        """Keep what is to be known about the last run, or give it back."""
        if data is None:
            return json_in(self._note(".json"))
        with suppress(OSError):  # a full disk was reported before
            write_whole(self._note(".json"), json.dumps(data, indent=1))
        return data

    def disputes(self) -> list[dict[str, Any]]:
        """Exercises that were judged again, the first one first, as ``keep_dispute`` takes them.

        Raises GradingError where they cannot be read.
        """
        path = self._note(".disputes.jsonl")
        try:
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise GradingError(f"{path} cannot be read: {error}. Mend it, or move it away.") from None

    def keep_dispute(self, dispute: dict[str, Any]) -> None:
        """Keep the old and the new verdict on an exercise."""
        lines = "".join(f"{json.dumps(one)}\n" for one in [*self.disputes(), dispute])
        write_whole(self._note(".disputes.jsonl"), lines)

    def _note(self, kind: str) -> Path:
        return self.root / ".grading" / f"{self.assignment}{kind}"


def require_known(assignment: str, names: Iterable[str]) -> None:
    """Raise GradingError for an assignment that is none of those in the gradebook."""
    names = sorted(names)
    if assignment not in names:
        hint = did_you_mean(assignment, names, f"It has {', '.join(names) or 'none'}.")
        advice = f"If it is new, run `nbgrader generate_assignment {assignment}` first."
        raise GradingError(f"The gradebook has no assignment {assignment!r}. {hint} {advice}")


def _load(db_url: str | None) -> AutogradeApp:
    """nbgrader's own application with the settings of the current folder."""
    if not os.path.exists(SETTINGS):
        raise GradingError(f"There is no {SETTINGS} in {os.getcwd()}. Go to the course's folder.")
    app = AutogradeApp()
    app.raise_config_file_errors = True
    app.log_level = logging.ERROR
    try:
        app.initialize([f"--db={db_url}"] if db_url else [])
    except SystemExit:
        raise GradingError(f"{SETTINGS} has a setting that nbgrader refuses; see above. Mend it.") from None
    except Exception as error:
        raise GradingError(f"{SETTINGS} cannot be read: {type(error).__name__}: {error}. Mend it.") from None
    return app


class _Log(logging.FileHandler):
    """A log file that is made when there is something to log. A full disk is reported by what failed."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):
            os.makedirs(os.path.dirname(self.baseFilename), exist_ok=True)
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        pass
