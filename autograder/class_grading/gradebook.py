"""The gradebook while a class is graded: looked over once, then one connection and one transaction a student.

nbgrader opens the database ten times for a submission and commits after every cell. In between, a crash
leaves half a grade behind; and with PostgreSQL, connecting takes longer than all the rest.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import nbgrader
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from nbgrader.api import Base
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, NoSuchModuleError, OperationalError

from ..command_line import CommandError
from ..nbgrader_plugin.patches import MIGRATIONS, sharing

DATABASE_SECONDS = 10
# What grading writes to.
WRITTEN = ("student", "submitted_assignment", "submitted_notebook", "grade", "comment")


class GradingError(CommandError):
    """Grading cannot start or go on."""


class GradebookAway(GradingError):
    """The gradebook cannot be used now, which may pass."""


# What to do about what may be wrong with a database.
RIGHTS = "Give this account the right to write to it."
BUSY = "Wait until the other program that writes to it is done."
AWAY = "See that the database runs and that CourseDirectory.db_url is right."
# What SQLite says (its errors have no names in Python 3.10), and PostgreSQL's numbers.
TROUBLES = {
    "Make room on its disk.": ("disk is full", "disk I/O error", "53100"),
    RIGHTS: ("readonly database", "permission denied", "42501", "25006"),
    BUSY: ("is locked",),
}


class OpenGradebook:
    """One connection to the gradebook. Raises GradingError where there is none to be had."""

    def __init__(self, db_url: str, *, write: bool = True) -> None:
        try:
            self.url = make_url(db_url)
            self.url.get_dialect()
        except (ArgumentError, NoSuchModuleError):
            what = f"CourseDirectory.db_url is {db_url!r}, which is no address of a database"
            how = "sqlite:////course/gradebook.db or postgresql+psycopg://user:password@host/name"
            raise GradingError(f"{what}. Write it like {how}.") from None
        self.name = self.url.render_as_string(hide_password=True)
        kind, file = self.url.get_backend_name(), (self.url.database or "").removeprefix("file:")
        if kind == "sqlite" and not os.path.exists(file.partition("?")[0]):
            advice = "Run `nbgrader generate_assignment` first, or set CourseDirectory.db_url."
            raise GradingError(f"There is no gradebook at {self.url.database}. {advice}")
        limits = {"connect_timeout": DATABASE_SECONDS} if kind == "postgresql" else {}
        try:
            self.engine = create_engine(self.url, connect_args=limits)
            self.connection: Connection = self.engine.connect()
            self._check_version()
            # Nothing at all is written to these tables, which asks for every right that grading needs.
            for table in WRITTEN if write else ():
                self.connection.execute(text(f"INSERT INTO {table} SELECT * FROM {table} WHERE 1 = 0"))
                self.connection.execute(text(f"UPDATE {table} SET id = id WHERE 1 = 0"))
            self.connection.rollback()
        except DBAPIError as error:
            raise self.trouble(error) from None

    def _check_version(self) -> None:
        db = inspect(self.connection)
        there = {name: {column["name"] for column in db.get_columns(name)} for name in db.get_table_names()}
        if not there:
            raise GradingError(f"{self.name} is empty. Run `nbgrader generate_assignment` first.")
        used = (column for table in Base.metadata.tables.values() for column in table.columns)
        missing = [str(column) for column in used if column.name not in there.get(column.table.name, ())]
        version = MigrationContext.configure(self.connection).get_current_revision()
        if missing or version not in (None, ScriptDirectory(str(MIGRATIONS)).get_current_head()):
            what = f" (it has no {', '.join(missing[:3])})" if missing else ""
            advice = "install it, if it is newer; if not, copy the gradebook, then run `nbgrader db upgrade`"
            here = f"another nbgrader than {nbgrader.__version__}{what}"
            raise GradingError(f"The gradebook {self.name} was made by {here}: {advice}.")

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Let every ``Gradebook`` that nbgrader opens use this connection, and this transaction.

        Nothing is kept before ``commit`` is called; what was not committed at the end is undone.
        """
        try:
            self.connection.begin()
            with sharing(self.connection):
                yield
        finally:
            if not self.connection.invalidated:
                self.connection.rollback()

    def commit(self) -> None:
        self.connection.commit()
        self.connection.begin()

    def trouble(self, error: DBAPIError) -> GradingError:
        """What a database's error means for the instructor: a GradebookAway where to wait may help."""
        reason = (str(error.orig or error).strip().splitlines() or [type(error).__name__])[0]
        code = getattr(error.orig, "sqlstate", None)
        signs = ((sign, what) for what, signs in TROUBLES.items() for sign in signs)
        what = next((what for sign, what in signs if sign == code or sign in reason), AWAY)
        passes = isinstance(error, (OperationalError, InterfaceError)) and what in (BUSY, AWAY)
        return (GradebookAway if passes else GradingError)(
            f"The gradebook {self.name} cannot be used: {reason.rstrip('.')}. {what}", again=True
        )

    def close(self) -> None:
        with suppress(DBAPIError):  # it may be lost already
            self.connection.close()
        self.engine.dispose()
