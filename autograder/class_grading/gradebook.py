"""The gradebook while a class is graded: looked over once, then one connection and one transaction a student.

nbgrader opens the database ten times for a submission and commits after every cell. In between, a crash
leaves half a grade behind; and with PostgreSQL, connecting takes longer than all the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import nbgrader
from nbgrader.api import Base
from sqlalchemy import Connection, Inspector, create_engine, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
)

from ..nbgrader_plugin.patches import migrations, sharing

DATABASE_SECONDS = 10
WAIT = "Wait until the other program that writes to it is done"
SEE = "See that the database runs and that CourseDirectory.db_url is right"
# What grading writes to.
WRITTEN = ("student", "submitted_assignment", "submitted_notebook", "grade", "comment")


class GradebookError(Exception):
    """The gradebook cannot be used; the message says why and what to do."""


class OpenGradebook:
    """One connection to the gradebook. Raises GradebookError where there is none to be had."""

    def __init__(self, db_url: str, *, write: bool = True) -> None:
        self.url = _parse(db_url)
        self.name = self.url.render_as_string(hide_password=True)
        if self.url.get_backend_name() == "sqlite" and not _sqlite_exists(self.url):
            raise GradebookError(
                f"There is no gradebook at {self.url.database}. Run `nbgrader generate_assignment` for the "
                "assignment first, or set CourseDirectory.db_url in nbgrader_config.py."
            )
        seconds = {"postgresql": "connect_timeout"}.get(self.url.get_backend_name())
        try:
            self.engine = create_engine(self.url, connect_args={seconds: DATABASE_SECONDS} if seconds else {})
            self.connection: Connection = self.engine.connect()
            self._check_version(inspect(self.connection))
            if write:
                self._check_rights()
        except ModuleNotFoundError as error:
            raise GradebookError(
                f"The database driver for {self.name} is not installed ({error}). For PostgreSQL: "
                'pip install "autograder[course]"'
            ) from None
        except DBAPIError as error:
            raise GradebookError(database_trouble(error, self.name)) from None

    def _check_version(self, found: Inspector) -> None:
        tables = set(found.get_table_names())
        if not tables:
            raise GradebookError(
                f"The gradebook {self.name} is empty. Run `nbgrader generate_assignment` for the assignment "
                "first."
            )
        missing = [name for name in Base.metadata.tables if name not in tables]
        for name, table in Base.metadata.tables.items():
            if name in tables:
                there = {column["name"] for column in found.get_columns(name)}
                missing += [f"{name}.{column.name}" for column in table.columns if column.name not in there]
        version = None
        if "alembic_version" in tables:
            version = self.connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        self.connection.rollback()
        scripts = migrations()
        known = {script.revision for script in scripts.walk_revisions()}
        if version and version not in known:
            raise GradebookError(
                f"The gradebook {self.name} was made by a newer nbgrader than the one installed here "
                f"({nbgrader.__version__}). Install the newer one: pip install --upgrade nbgrader"
            )
        if missing or (version and version != scripts.get_current_head()):
            what = f" (it has no {', '.join(missing[:3])})" if missing else ""
            raise GradebookError(
                f"The gradebook {self.name} was made by another version of nbgrader{what}. Make a copy of "
                "it, then run `nbgrader db upgrade` and start again."
            )

    def _check_rights(self) -> None:
        """Write nothing at all to the tables that grading writes to, which asks for every right it needs."""
        for table in WRITTEN:
            self.connection.execute(text(f"INSERT INTO {table} SELECT * FROM {table} WHERE 1 = 0"))
            self.connection.execute(text(f"UPDATE {table} SET id = id WHERE 1 = 0"))
        self.connection.rollback()

    @contextmanager
    def shared(self) -> Iterator[OpenGradebook]:
        """Let every ``Gradebook`` that nbgrader opens use this connection, and this transaction.

        Nothing is kept before ``commit`` is called; what was not committed at the end is undone.
        """

        try:
            self.connection.begin()
            with sharing(self.connection):
                yield self
        finally:
            if not self.connection.invalidated:
                self.connection.rollback()

    def commit(self) -> None:
        """Keep what was written since the last time."""
        self.connection.commit()
        self.connection.begin()

    def connect_again(self) -> None:
        """A new connection in place of one that was lost. Raises GradebookError."""
        with suppress(DBAPIError):
            self.connection.close()
        self.engine.dispose()
        try:
            self.connection = self.engine.connect()
        except DBAPIError as error:
            raise GradebookError(database_trouble(error, self.name)) from None

    def close(self) -> None:
        self.connection.close()
        self.engine.dispose()


def may_pass(error: DBAPIError) -> bool:
    """Whether to wait may help: the database cannot be reached, or another program writes to it."""
    return isinstance(error, (OperationalError, InterfaceError)) and _advice(_reason(error)) in (WAIT, SEE)


def database_trouble(error: DBAPIError, name: str) -> str:
    """What a database's error means for the instructor."""
    reason = _reason(error)
    return f"The gradebook {name} cannot be used: {reason.rstrip('.')}. {_advice(reason)}, then start again."


def _reason(error: DBAPIError) -> str:
    """The first line of what the database says."""
    lines = [line.strip() for line in str(error.orig or error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _advice(reason: str) -> str:
    """What to do about what a database says."""
    small = reason.lower()
    if "full" in small or "no space" in small or "disk i/o" in small:
        return "Make room on its disk"
    if "readonly" in small or "read-only" in small or "permission" in small or "denied" in small:
        return "Give this account the right to write to it"
    return WAIT if "locked" in small else SEE


def _parse(db_url: str) -> URL:
    try:
        url = make_url(db_url)
        url.get_dialect()
        return url
    except (ArgumentError, NoSuchModuleError):
        raise GradebookError(
            f"CourseDirectory.db_url is {db_url!r}, which is no address of a database. "
            "Write it like sqlite:////course/gradebook.db or postgresql+psycopg://user:password@host/name."
        ) from None


def _sqlite_exists(url: URL) -> bool:
    path = (url.database or "").removeprefix("file:").partition("?")[0]
    return bool(path) and os.path.exists(path)
