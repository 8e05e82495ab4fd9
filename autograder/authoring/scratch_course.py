"""A course in a folder of its own: the real settings and assignments, with private students and grades."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from ..command_line import CommandError
from .builder import build


class ScratchCourse:
    """A folder in which nbgrader commands run with the course's own ``nbgrader_config.py``.

    The gradebook, the exchange and nbgrader's cache are in this folder, too; the checkout stays as it is.
    ``root`` is the checkout that has the real settings; a folder that has settings of its own needs none.
    ``environment`` is what the commands find in theirs beside this process's own.
    """

    def __init__(self, folder: Path, root: Path | None = None) -> None:
        self.folder = folder.resolve()
        self.log = self.folder / "nbgrader.log"
        # The settings of whoever runs this must not mix with the course's.
        self.environment = {"JUPYTER_CONFIG_DIR": str(self.folder / "jupyter")}
        if root is not None:
            places = {name: str(self.folder / name) for name in ("exchange", "cache")}
            for place in places.values():
                Path(place).mkdir(parents=True, exist_ok=True)
            form = Path(__file__).with_name("scratch_config.txt").read_text(encoding="utf-8")
            settings = form.format(root=str(root.resolve()), folder=str(self.folder), **places)
            (self.folder / "nbgrader_config.py").write_text(settings, encoding="utf-8")

    def add_assignment(self, source: Path) -> str:
        """Build an assignment's notebook from its script into this course; gives the assignment's name."""
        folder = self.folder / "solutions" / source.stem
        folder.mkdir(parents=True)
        nbformat.write(build(source), folder / f"{source.stem}.ipynb")
        return source.stem

    def nbgrader(self, *arguments: str) -> str:
        """Run one nbgrader command here; gives what it printed. Raises CommandError if it fails."""
        return self._run("nbgrader", *arguments, stderr=subprocess.STDOUT)

    def grade(self, assignment: str, *options: str) -> None:
        """Grade a class with the course's own command; its progress stays in sight. Raises CommandError."""
        self._run("autograder", "grade", assignment, *options)

    def _run(self, *words: str, stderr: int | None = None) -> str:
        command, environment = [sys.executable, "-m", *words], {**os.environ, **self.environment}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True
        )
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(words)}\n{done.stdout}\n")
        if done.returncode:
            end = "\n".join(done.stdout.splitlines()[-15:])
            raise CommandError(f"{' '.join(words)} failed; {self.log} has all, and last:\n{end}")
        return done.stdout

    def released(self, assignment: str) -> NotebookNode:
        return nbformat.read(self.folder / "exercises" / assignment / f"{assignment}.ipynb", as_version=4)

    @property
    def db_url(self) -> str:
        """Where the gradebook is, unless the settings name another."""
        return f"sqlite:///{self.folder / 'gradebook.db'}"

    def points(self, assignment: str, db_url: str | None = None) -> dict[str, dict[str, float | None]]:
        """The points in the gradebook: student → test cell → points (None where nothing was recorded)."""
        from nbgrader.api import Gradebook

        with Gradebook(db_url or self.db_url) as gradebook:
            return {
                submission.student_id: {
                    grade.name: grade.score if grade.auto_score is not None else None
                    for notebook in submission.notebooks
                    for grade in notebook.grades
                }
                for submission in gradebook.assignment_submissions(assignment)
            }

    def page(self, student: str, assignment: str) -> Path:
        return self.folder / "feedback" / student / assignment / f"{assignment}.html"
