"""The class of tests/adversaries: what each file hands in, and what grading all of them at once gave.

An adversary is a small percent script. Its docstring says what it tries; in it stand the points that it must
get (``<`` for less than so many) and whether an instructor must hear of it::

    # points: total_check=1 total_hidden=2 total_race<2.9
    # suspicious: yes

Test cells that are not named must give full points if the file answers their exercise, and 0 if it does not.
Without the line ``suspicious``, it does not matter. What would use up any time limit says ``# endless``, and
gets a short one. The cells, read as ``answers`` reads them:

- ``# %% total answer`` is the answer to an exercise;
- ``# %% extra first`` (``last``, ``before_total``, ``after_total_check``) is a cell that the student added;
- ``# %% file torch`` is a file ``torch.py`` that is handed in beside the notebook;
- ``# %% notebook edit`` is what the student did to the file: it is run here, with the names ``notebook``,
  ``cell`` (the cell of a grade_id), ``path`` (of the notebook) and ``handed_in`` (the folder of all
  submissions).

In a cell, ``# IPython: %timeit f()`` stands for a line that is no Python.
"""

import ast
import ctypes
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

import nbformat
import psutil
from grading_class import configure
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from pretend_class import Graded, find, hand_in
from repository import ROOT

from autograder.authoring.answers import KnownAnswer, points_of, read_answers
from autograder.authoring.scratch_course import ScratchCourse
from autograder.command_line import CommandError
from autograder.files import write_whole
from autograder.roles import exercise_of

FOLDER = ROOT / "tests" / "adversaries"
ASSIGNMENT = FOLDER / "assignment.py"
ASSIGNMENTS = (ASSIGNMENT, FOLDER / "traps.py")
MARK = "adversary-was-here"  # the name of every file that an adversary tries to leave
TIME_LIMIT, ENDLESS_LIMIT = 60, 5  # seconds for a cell
# Beside other tests the machine is seldom quiet for long, so it looks again soon.
LIMITS = f"""
import os
from autograder.sandbox.submissions import supervisor
supervisor.AGAIN_SECONDS = 2.0
c.RunEveryCell.timeout = int(os.environ.get("CELL_SECONDS", {TIME_LIMIT}))
c.RunEveryCell.notebook_timeout = 8 * c.RunEveryCell.timeout"""
DYING_SECONDS = 10
NEAR = 0.05  # points
PR_SET_CHILD_SUBREAPER = 36  # of prctl, see its manual page
NO_PYTHON = re.compile(r"(?m)^# IPython: ")
EXERCISES = {"total", "shift", "Batches", "farthest"}
HONEST = ("aa_honest", "zz_honest")  # the first and the last of every class


@dataclass(frozen=True)
class Adversary:
    name: str
    parts: list[KnownAnswer]
    said: dict[str, tuple[str, float]]  # test cell -> "=" or "<", and points
    suspicious: bool | None
    endless: bool

    def wrong(self, got: dict[str, float | None], most: dict[str, float]) -> dict[str, str]:
        """The test cells that gave other points than they must; ``most`` has the full points."""
        answered, found = {part.exercise for part in self.parts}, {}
        for test, points in most.items():
            its_own = points if exercise_of(test, EXERCISES) in answered else 0.0
            sign, wanted = self.said.get(test, ("=", its_own))
            given = got.get(test)
            if given is None or not (given < wanted if sign == "<" else abs(given - wanted) <= NEAR):
                found[test] = f"{given} instead of {sign} {wanted}"
        return found

    def hand_in(self, course: ScratchCourse, assignment: str, release: NotebookNode, student: str) -> None:
        notebook = deepcopy(release)
        for part in self.parts:
            if part.exercise == "extra":
                notebook.cells.insert(place(notebook, part.kind), new_code_cell(part.code))
            elif part.exercise not in ("file", "notebook"):
                find(notebook, part.exercise).source = part.code
        names = {"notebook": notebook, "cell": lambda name: find(notebook, name)}
        folder = course.folder / "submitted" / student / assignment
        names |= {"path": folder / f"{assignment}.ipynb", "handed_in": course.folder / "submitted"}
        for part in self.parts:
            if part.exercise == "notebook":
                exec(part.code, names)
        if not os.path.lexists(names["path"]):
            hand_in(course, assignment, student, notebook)
        for part in self.parts:
            if part.exercise == "file":
                (folder / f"{part.kind}.py").write_text(part.code)


def place(notebook: NotebookNode, where: str) -> int:
    """The index that ``first``, ``last``, ``before_NAME`` or ``after_NAME`` stands for."""
    side, _, name = where.partition("_")
    if not name:
        return {"first": 0, "last": len(notebook.cells)}[side]
    return notebook.cells.index(find(notebook, name)) + (side == "after")


def read(path: Path) -> Adversary:
    """One file. Raises ValueError where it does not say what it tries, or names no points."""
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    if not (line := re.search(r"(?m)^# points:(.*)$", said)):
        raise ValueError(f"{path}: the docstring needs a line '# points: …'.")
    points = {name: (sign, float(value)) for name, sign, value in re.findall(r"(\w+)([=<])([\d.]+)", line[1])}
    suspicious = re.search(r"(?m)^# suspicious: (yes|no)$", said)
    return Adversary(
        path.stem,
        [replace(part, code=NO_PYTHON.sub("", part.code or "")) for part in read_answers(path)],
        points,
        suspicious and suspicious[1] == "yes",
        re.search(r"(?m)^# endless$", said) is not None,
    )


def catalogue() -> dict[str, Adversary]:
    """All files, by name."""
    return {path.stem: read(path) for path in sorted(FOLDER.glob("*.py")) if path not in ASSIGNMENTS}


@dataclass
class Aftermath:
    """The graded class, and what was left of it."""

    graded: Graded
    most: dict[str, float]
    secrets: dict[str, str]
    processes: list[str] = field(default_factory=list)  # those that outlived the command
    changed: list[str] = field(default_factory=list)  # files that nobody should have touched
    failure: Exception | None = None


def by_the_engine(course: ScratchCourse, assignment: str, endless: list[str]) -> None:
    """Grade with the course's own command: the endless ones first; the others have time on a busy machine."""
    if endless:
        course.environment["CELL_SECONDS"] = str(ENDLESS_LIMIT)
        course.grade(assignment, "--student", *endless)
        del course.environment["CELL_SECONDS"]
    try:
        course.grade(assignment)
    except CommandError as error:  # as it must, where an id was refused
        failed = [line for line in str(error).splitlines() if line.startswith("failed: ")]
        if not failed or not all("characters that no id may have" in line for line in failed):
            raise


def grade(folder: Path, adversaries: dict[str, Adversary], secrets: dict[str, str], plain: bool) -> Aftermath:
    """Hand in these and two honest ones, and grade them: by plain nbgrader, or by the course's command."""
    course = ScratchCourse(folder, ROOT)
    configure(course, LIMITS)
    source = ASSIGNMENT.read_text(encoding="utf-8")
    for token, name in ("TOKEN-SOLUTION", "solution"), ("TOKEN-HIDDEN", "hidden"), ("TOKEN_MODULE", "module"):
        source = source.replace(token, secrets[name])
    write_whole(script := folder / "source" / ASSIGNMENT.name, source)
    assignment = course.add_assignment(script)
    course.nbgrader("generate_assignment", assignment)
    release = course.released(assignment)
    (course.folder / "secret.txt").write_text(secrets["gradebook"])
    for name, adversary in adversaries.items():
        adversary.hand_in(course, assignment, release, name)
    for student in HONEST:
        read(FOLDER / "honest.py").hand_in(course, assignment, release, student)
        path = course.folder / "submitted" / student / assignment / f"{assignment}.ipynb"
        path.write_text(path.read_text().replace("def shift", f"# {secrets['submission']}\\ndef shift"))
    before = fingerprints(course)
    failure = None
    with adopted() as left:
        try:
            if plain:
                course.nbgrader("autograde", assignment)
            else:
                by_the_engine(course, assignment, [name for name, one in adversaries.items() if one.endless])
        except Exception as error:  # for a test to tell
            failure = error
    course.nbgrader("generate_feedback", assignment)
    after = fingerprints(course)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    solved = nbformat.read(course.folder / f"solutions/{assignment}/{assignment}.ipynb", as_version=4)
    return Aftermath(Graded(course, assignment), points_of(solved), secrets, left, changed, failure)


def fingerprints(course: ScratchCourse) -> dict[str, str]:
    """What files hold that no grading should change, and where adversaries would leave their mark."""
    files = {
        str(path.relative_to(course.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for part in ("solutions", "submitted", "exercises", "source", "nbgrader_config.py", "secret.txt")
        for path in [course.folder / part, *(course.folder / part).rglob("*")]
        if path.is_file() and not path.is_symlink()
    }
    places = [course.folder, course.folder.parent, ROOT / "autograder", ROOT, Path.home()]
    marks = [path for place in [*places, Path("/tmp"), Path("/dev/shm")] for path in place.glob(f"{MARK}*")]
    return files | {str(path): "a mark" for path in [*marks, *course.folder.rglob(f"{MARK}*")]}


@contextmanager
def adopted() -> Iterator[list[str]]:
    """Afterwards, the processes that the block has left behind: orphans become this one's children."""
    libc, me = ctypes.CDLL(None), psutil.Process()
    before = me.children(recursive=True)
    left: list[str] = []
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield left
        new = [process for process in me.children(recursive=True) if process not in before]
        # What was killed may take a moment to go.
        left += [str(process) for process in psutil.wait_procs(new, timeout=DYING_SECONDS)[1]]
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
