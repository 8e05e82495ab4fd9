"""A PostgreSQL server of our own, in a temporary folder, reached over a socket in that folder."""

import glob
import os
import shutil
import tempfile
from pathlib import Path

from programs import POSTGRESQL, printed


class Postgres:
    def __init__(self) -> None:
        self.programs = Path((sorted(glob.glob(POSTGRESQL)) or [str(shutil.which("initdb"))])[-1]).parent
        # Not pytest's folders: only their owner may enter, and a socket's path is limited to 107 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self.data = self.folder / "data"
        # PostgreSQL refuses to run as root.
        self.user = ["runuser", "-u", "nobody", "--"] if os.geteuid() == 0 else []
        if self.user:
            shutil.chown(self.folder, "nobody")
        self._call("initdb", "--pgdata", self.data, "--username=grader", "--auth=trust", "--no-sync")
        self.start()

    def _call(self, program: str, *arguments: object) -> None:
        printed(*self.user, self.programs / program, *arguments, cwd=self.folder)

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        log = str(self.folder / "log")
        self._call("pg_ctl", "start", "--pgdata", self.data, "--wait", "--log", log, "--options", options)

    def require_password(self, password: str) -> None:
        """Let nobody in without it from now on."""
        self.sql("postgres", f"ALTER ROLE grader PASSWORD '{password}'")
        (self.data / "pg_hba.conf").write_text("local all all scram-sha-256\n")
        self._call("pg_ctl", "reload", "--pgdata", self.data)

    def kill(self) -> None:
        """Stop it as a power cut would."""
        self._call("pg_ctl", "stop", "--pgdata", self.data, "--mode=immediate")

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder)

    def sql(self, database: str, statement: str) -> str:
        """What psql prints for a statement, without decoration."""
        about = ["-h", self.folder, "-U", "grader", "-d", database]
        return printed(self.programs / "psql", *about, "-Atc", statement).strip()

    def database(self, name: str) -> str:
        """Make an empty database; gives its URL."""
        self.sql("postgres", f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://grader@/{name}?host={self.folder}"
