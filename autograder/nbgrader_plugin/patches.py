"""All that this course replaces in nbgrader, and all of nbgrader's private parts that it uses.

nbgrader has no setting and no hook for these. Tried with the versions in ``TRIED``; pyproject.toml and
environment.yml allow no later series. A new nbgrader is to be tried with the tests in tests/grading.
"""

from __future__ import annotations

import glob
import inspect
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import nbgrader
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.converters.base import BaseConverter
from nbgrader.preprocessors import ClearHiddenTests
from sqlalchemy import Connection
from sqlalchemy.orm import scoped_session, sessionmaker
from traitlets.config import LoggingConfigurable

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

TRIED = ("0.9.5", "0.9.6")
MIGRATIONS = Path(nbgrader.__file__).parent / "alembic"
PRIVATE: dict[type, tuple[str, ...]] = {
    BaseConverter: ("init_notebooks", "_format_source", "_format_dest"),
    Autograde: ("_sanitizing",),
    ClearHiddenTests: ("_remove_hidden_test_region",),
    Gradebook: ("close",),
}
ARGUMENTS = ["self", "db_url", "course_id", "authenticator"]  # of Gradebook


class NbgraderChanged(Exception):
    """The installed nbgrader lacks something that the course relies on; the message says what."""


def check_nbgrader() -> None:
    """Raises NbgraderChanged where the installed nbgrader lacks what this module uses."""
    missing = [
        f"{owner.__name__}.{name}"
        for owner, names in PRIVATE.items()
        for name in names
        if not hasattr(owner, name)
    ]
    if list(inspect.signature(Gradebook.__init__).parameters) != ARGUMENTS:
        missing.append(f"Gradebook({', '.join(ARGUMENTS[1:])})")
    if not MIGRATIONS.is_dir():
        missing.append(f"folder {MIGRATIONS.name} with the gradebook's versions")
    if missing:
        raise NbgraderChanged(
            f"nbgrader {nbgrader.__version__} has no {', no '.join(missing)}. The course was tried with "
            f"nbgrader {' and '.join(TRIED)}: install one of these."
        )


def list_notebooks_with(function: Callable[[Autograde], None]) -> None:
    """Let every nbgrader command list what to autograde with ``function``.

    nbgrader does that in ``init_notebooks``, from the files it finds, and its commands and its formgrader
    create ``Autograde`` by name, so this one method is replaced.
    """
    Autograde.init_notebooks = function


def no_notebooks(converter: Autograde) -> None:
    """Raises NbGraderException, with nbgrader's own advice, where nobody handed in anything."""
    BaseConverter.init_notebooks(converter)


def submitted_folders(converter: Autograde) -> list[str]:
    """The folders of the submissions that a converter was asked to grade."""
    course = converter.coursedir
    return glob.glob(converter._format_source(course.assignment_id, course.student_id))


def owner(converter: Autograde, folder: str) -> tuple[str, str]:
    """The assignment and the student that a folder of ``submitted_folders`` belongs to.

    Raises ValueError for any other folder.
    """
    pattern = converter._format_source("(?P<assignment>.*)", "(?P<student>.*)", escape=True)
    if match := re.fullmatch(pattern, folder):
        return match["assignment"], match["student"]
    raise ValueError(f"{folder} is no submission's folder")


def autograded_folder(converter: Autograde, assignment: str, student: str) -> Path:
    """Where a student's autograded notebooks are, or will be."""
    return Path(os.path.normpath(converter._format_dest(assignment, student)))


def reads_its_own(converter: LoggingConfigurable | None) -> bool:
    """Whether a converter is about to read what grading wrote itself, not what a student handed in."""
    return isinstance(converter, Autograde) and not converter._sanitizing


def remove_hidden_tests(cell: NotebookNode, parent: LoggingConfigurable | None = None) -> bool:
    """Take the hidden tests out of a cell, as for students; whether there were any."""
    return ClearHiddenTests(parent=parent)._remove_hidden_test_region(cell)


def migrations() -> ScriptDirectory:
    """The versions of the gradebook's tables that nbgrader knows."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(MIGRATIONS))


@contextmanager
def sharing(connection: Connection) -> Iterator[None]:
    """Let every ``Gradebook`` that is opened in the block use one connection, and its transaction."""

    def use(
        gradebook: Gradebook,
        db_url: str,
        course_id: str = "default_course",
        authenticator: object = None,
    ) -> None:
        gradebook.engine, gradebook.course_id, gradebook.authenticator = connection.engine, course_id, None
        gradebook.db = scoped_session(
            sessionmaker(bind=connection, join_transaction_mode="rollback_only", future=True)
        )

    def leave(gradebook: Gradebook) -> None:
        gradebook.db.remove()

    with patch.object(Gradebook, "__init__", use), patch.object(Gradebook, "close", leave):
        yield
