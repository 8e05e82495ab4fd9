"""All that this course replaces in nbgrader, and all of nbgrader's private parts that it uses.

nbgrader has no setting and no hook for these. Tried with the versions in ``TRIED``; pyproject.toml and
environment.yml allow no later series. A new nbgrader is to be tried with the tests in tests/grading.
"""

import glob
import inspect
import io
import os
import re
import secrets
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partialmethod
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbgrader
from jinja2 import Environment, FileSystemLoader
from nbformat import NotebookNode
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.apps import dbapp
from nbgrader.converters import Autograde
from nbgrader.converters.base import BaseConverter
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearHiddenTests
from nbgrader.server_extensions.formgrader import handlers
from nbgrader.server_extensions.formgrader.base import BaseHandler
from nbgrader.server_extensions.formgrader.handlers import FormgraderHandler, SubmissionFilesHandler
from sqlalchemy import Connection
from sqlalchemy.orm import scoped_session, sessionmaker
from tornado.web import HTTPError
from traitlets.config import LoggingConfigurable
from traitlets.utils.importstring import import_item

TRIED = ("0.9.5", "0.9.6")
MIGRATIONS = Path(nbgrader.__file__).parent / "alembic"
TEMPLATES = Path(handlers.template_path)
OWN_TEMPLATES = Path(__file__).parent / "templates"
PRIVATE: dict[type, tuple[str, ...]] = {
    BaseConverter: ("init_notebooks", "init_assignment", "_format_source", "_format_dest"),
    CourseDirectory: ("get_existing_timestamp",),
    Autograde: ("_sanitizing",),
    ClearHiddenTests: ("_remove_hidden_test_region",),
    Gradebook: ("close",),
    dbapp.DbAssignmentAddApp: ("start",),
    dbapp.DbGenericImportApp: ("start",),
    BaseHandler: ("exporter", "render"),
    FormgraderHandler: ("get",),
    SubmissionFilesHandler: ("get",),
}
ARGUMENTS = ["self", "db_url", "course_id", "authenticator"]  # of Gradebook
# What the formgrader's own pages have in attributes such as onclick.
CLICKS = (
    "createAssignmentModal();",
    "createStudentModal();",
    "toggleAllNames()",
    "toggle_name(false);",
    "toggle_name(true);",
)
# What nbgrader's templates lack for those who do not see them, and a place for our own style of its lists.
MENDED = {
    "<html>": '<html lang="en">',
    "<!doctype html>\n<head>": '<!doctype html>\n<html lang="en">\n<head>',
    '/css/nbgrader.css">': '/css/nbgrader.css">{% include "lists.html" %}',
    '<input class="score': '<input aria-label="Points of {{ cell.metadata.nbgrader.grade_id }}" class="score',
    '<input class="extra-credit': '<input aria-label="Extra credit" class="extra-credit',
    "<textarea": '<textarea aria-label="Comment on {{ cell.metadata.nbgrader.grade_id }}"',
    '<ul class="nav text-center">': '<ul class="nav text-center" role="presentation">',
}
ROLES = re.compile(r' role="(presentation|tab|tablist|tabpanel)"( aria-multiselectable="true")?')
Method = Callable[..., Any]
MARK = secrets.token_hex(16)  # stands in the formgrader's scripts for the nonce of an answer


def check_nbgrader() -> None:
    """Raises RuntimeError where the installed nbgrader lacks what this module uses; the message says what."""
    used = ((owner, name) for owner, names in PRIVATE.items() for name in names)
    missing = [f"{owner.__name__}.{name}" for owner, name in used if name not in vars(owner)]
    if list(inspect.signature(Gradebook.__init__).parameters) != ARGUMENTS:
        missing.append(f"Gradebook({', '.join(ARGUMENTS[1:])})")
    if not MIGRATIONS.is_dir():
        missing.append(f"folder {MIGRATIONS.name} with the gradebook's versions")
    if missing:
        what, tried = f"nbgrader {nbgrader.__version__} has no {', no '.join(missing)}", " and ".join(TRIED)
        raise RuntimeError(f"{what}. The course was tried with nbgrader {tried}: install one of these.")


def replace(
    *, list_notebooks: Method, copy_files: Method, timestamp_of: Method, date: Method, table: Method
) -> None:
    """Put these functions in the place of nbgrader's, for all of its commands and its formgrader.

    ``list_notebooks`` says what to autograde, ``copy_files`` takes over what is beside the notebooks of a
    submission, ``timestamp_of`` says when it was handed in. ``date`` reads dates for the gradebook, ``table``
    the files of `nbgrader db … import`: where they raise a ValueError, the command ends with its sentence.
    """
    if Autograde.init_notebooks is list_notebooks:  # the course's settings, which call this, are read again
        return
    copy_all = BaseConverter.init_assignment

    def copy(self: BaseConverter, assignment_id: str, student_id: str) -> None:
        # nbgrader copies all files, whatever they are. Its other converters go on doing so.
        (copy_files if isinstance(self, Autograde) else copy_all)(self, assignment_id, student_id)

    def enter(self: dbapp.DbBaseApp, start: Callable[[dbapp.DbBaseApp], None]) -> None:
        try:
            start(self)
        except ValueError as error:
            self.fail("%s", error)

    Autograde.init_notebooks = list_notebooks
    BaseConverter.init_assignment = copy
    CourseDirectory.get_existing_timestamp = timestamp_of
    utils.parse_utc = date
    dbapp.open = lambda path, _mode: io.StringIO(table(path))
    for kind in (dbapp.DbAssignmentAddApp, dbapp.DbGenericImportApp):
        kind.start = partialmethod(enter, start=kind.start)


class _Templates(FileSystemLoader):
    """Templates whose scripts may run, as nobody else knows the mark; mended, and without fonts."""

    def get_source(self, environment: Environment, template: str) -> Any:
        source, *rest = super().get_source(environment, template)
        source = ROLES.sub("", re.sub(r"@font-face\s*{[^}]*}", "", source))
        for lacking, mended in MENDED.items():
            source = source.replace(lacking, mended)
        return source.replace("<script", f'<script nonce="{MARK}"'), *rest


def templates(kind: str) -> FileSystemLoader:
    """nbgrader's templates for a page about a submission, with ours before them."""
    bootstrap = TEMPLATES.parent / "static" / "node_modules" / "bootstrap" / "dist" / "css"
    return _Templates([OWN_TEMPLATES / f"{kind}_page", OWN_TEMPLATES, TEMPLATES, TEMPLATES / kind, bootstrap])


def protect_formgrader(page: str) -> None:
    """Let nothing in the formgrader run, load or be served but what is nbgrader's own.

    ``page`` is the full name of the exporter for the page about a submission. nbgrader fills its templates
    with names as they are, serves any file that was handed in, runs the settings in any folder that a link
    names, and sends no policy of its own. It reads the course's settings, which call this, again and again.
    """

    def exporter(self: BaseHandler) -> Any:
        if "submission_page" not in self.settings:
            config = self.settings["nbgrader_exporter"].config
            self.settings["submission_page"] = import_item(page)(config=config)
        return self.settings["submission_page"]

    BaseHandler.exporter = property(exporter)
    BaseHandler.content_security_policy = property(_policy)
    BaseHandler.render = lambda _, name, **values: _pages.get_template(name).render(**values)
    BaseHandler.write = _write
    FormgraderHandler.get, SubmissionFilesHandler.get = _open_course, _serve_nothing


_pages = Environment(loader=_Templates([TEMPLATES, OWN_TEMPLATES]), autoescape=True)
_open_any_course = FormgraderHandler.get


def _nonce(handler: BaseHandler) -> str:
    return vars(handler).setdefault("script_nonce", secrets.token_urlsafe())


def _policy(self: BaseHandler) -> str:
    clicks = " ".join(f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in CLICKS)
    return (
        f"{super(BaseHandler, self).content_security_policy}; default-src 'none'; "
        f"script-src 'nonce-{_nonce(self)}' 'unsafe-hashes' {clicks}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'"
    )


def _write(self: BaseHandler, chunk: Any) -> None:
    super(BaseHandler, self).write(chunk.replace(MARK, _nonce(self)) if isinstance(chunk, str) else chunk)


def _open_course(self: FormgraderHandler) -> Any:
    if self.get_argument("path", ""):
        raise HTTPError(403, "The formgrader shows the course of the folder that its server runs in.")
    return _open_any_course(self)


def _serve_nothing(self: SubmissionFilesHandler, *_: object, **__: object) -> None:
    raise HTTPError(404, "What was handed in is not served.")


def submitted_folders(converter: Autograde) -> list[str]:
    """The folders of the submissions that a converter was asked to grade."""
    course = converter.coursedir
    return glob.glob(converter._format_source(course.assignment_id, course.student_id))


def owner(converter: Autograde, folder: str) -> tuple[str, str]:
    """Whose a folder of ``submitted_folders`` is: assignment and student."""
    pattern = converter._format_source("(?P<assignment>.*)", "(?P<student>.*)", escape=True)
    match = re.fullmatch(pattern, folder, re.DOTALL)
    assert match, f"{folder} is no submission's folder"
    return match["assignment"], match["student"]


def autograded_folder(converter: Autograde, assignment: str, student: str) -> Path:
    """Where a student's autograded notebooks are, or will be."""
    return Path(os.path.normpath(converter._format_dest(assignment, student)))


def submitted_folder(converter: Autograde, assignment: str, student: str) -> Path:
    """Where what a student handed in is. (While it runs cells, a converter reads from autograded/.)"""
    course = converter.coursedir
    return Path(course.format_path(course.submitted_directory, student, assignment))


def reads_its_own(converter: LoggingConfigurable | None) -> bool:
    """Whether a converter is about to read what grading wrote itself, not what a student handed in."""
    return isinstance(converter, Autograde) and not converter._sanitizing


def remove_hidden_tests(cell: NotebookNode, parent: LoggingConfigurable | None = None) -> bool:
    """Take the hidden tests out of a cell, as for students; whether there were any."""
    return ClearHiddenTests(parent=parent)._remove_hidden_test_region(cell)


@contextmanager
def sharing(connection: Connection) -> Iterator[None]:
    """Let every ``Gradebook`` that is opened in the block use one connection, and its transaction."""

    def use(
        book: Gradebook, db_url: str, course_id: str = "default_course", authenticator: Any = None
    ) -> None:
        book.engine, book.course_id, book.authenticator = connection.engine, course_id, None
        session = sessionmaker(bind=connection, join_transaction_mode="rollback_only", future=True)
        book.db = scoped_session(session)

    leave = patch.object(Gradebook, "close", lambda book: book.db.remove())
    with patch.object(Gradebook, "__init__", use), leave:
        yield
