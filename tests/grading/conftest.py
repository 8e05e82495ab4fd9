"""One class of students, graded once by the real nbgrader commands; the tests look at what came out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest
from postgres import Postgres
from pretend_class import TIME_LIMIT, Graded, answered, hand_in, submissions

from autograder.authoring.builder import build, solution_sources
from autograder.authoring.scratch_course import CommandFailed, ScratchCourse
from autograder.class_grading.pool import LocalPool, Pool
from autograder.sandbox import Executed, Sandbox
from autograder.sandbox.plan import imported_modules, plan


@contextmanager
def not_waiting_for(folder: Path) -> Iterator[None]:
    """Grade without waiting for other tests' races: the locks are in the folder for temporary files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        yield


@pytest.fixture(scope="module", autouse=True)
def locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nobody waits for races of other modules: the CPU clock judges, which a neighbour disturbs little."""
    with not_waiting_for(tmp_path_factory.mktemp("locks")):
        yield


class Lent:
    """A sandbox that does not end with the pool that it is lent to."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox, self.warning, self.notice = sandbox, sandbox.warning, sandbox.notice

    def run(self, cells: list[dict], **settings: Any) -> Executed:
        return self._sandbox.run(cells, **settings)

    def stop(self) -> None:
        pass


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox() as box:
        yield box


@pytest.fixture(scope="session")
def one_sandbox(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Callable[[bool], Pool]]:
    """A pool of one sandbox, which all tests of this process share: it takes long to start."""
    with not_waiting_for(tmp_path_factory.mktemp("locks")), Sandbox() as sandbox:
        # It loads what the first notebook needs, so that is all that any chapter does.
        chapters = [plan(build(source)) for source in solution_sources(root)]
        given = [cell["source"] for cells in chapters for cell in cells if cell["role"] == "given"]
        lines = [f"import {name}" for name in imported_modules(given)]
        lines.append("torch.neg(torch.ones(1, device='meta'))")
        first = {"index": 0, "role": "given", "source": "\n".join(lines), "grade_id": "a", "exercise": None}
        sandbox.run([first], assignment="all")
        yield lambda require: LocalPool([Lent(sandbox)], require=require)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server of its own for the tests of this process."""
    try:
        server = Postgres()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    yield server
    server.close()


@pytest.fixture(scope="session")
def traps(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Graded:
    """All kinds of bad input, one student each, graded in one run."""
    course, failure = ScratchCourse(tmp_path_factory.mktemp("course"), root), None
    assignment = course.add_assignment(Path(__file__).parent / "traps.py")
    (course.folder / "solutions" / assignment / f"{assignment}.py").write_text("# the solutions' script")
    course.nbgrader("generate_assignment", assignment)
    for student, content in submissions(course.released(assignment)).items():
        hand_in(course, assignment, student, content)
    renamed = course.folder / "submitted" / "renamed" / assignment / "my copy.ipynb"
    nbformat.write(answered(course.released(assignment)), renamed)
    with not_waiting_for(tmp_path_factory.mktemp("locks")):
        try:
            course.nbgrader("autograde", assignment, f"--RunEveryCell.timeout={TIME_LIMIT}")
        except CommandFailed as error:  # for one test to tell; the others look at the students
            failure = error
    course.nbgrader("generate_feedback", assignment)
    return Graded(course, assignment, failure)
