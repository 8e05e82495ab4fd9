"""One class of students, graded once by the real nbgrader commands; the tests look at what came out."""

import os
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pytest
from grading_class import INBOUND, Says, a_class
from postgres import Postgres
from programs import not_waiting_for
from repository import ROOT

from autograder.authoring.builder import build, solution_sources
from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading.pool import LocalPool, Pool
from autograder.sandbox import PlannedCell, Sandbox
from autograder.sandbox.submissions.plan import plan, to_load


@pytest.fixture(scope="module", autouse=True)
def locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nobody waits for races of other modules: the CPU clock judges, which a neighbour disturbs little."""
    with not_waiting_for(tmp_path_factory.mktemp("locks")):
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_by_all_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where ``built_once`` keeps its folders: in one place for all processes of pytest-xdist."""
    own = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHARED_BY_ALL_TESTS", str(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own))
        yield


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScratchCourse:
    """A class of its own for each test, not graded yet, in the current folder."""
    made = a_class(tmp_path / "class")
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScratchCourse:
    """A course with an exchange in which nobody has handed in anything, in the current folder."""
    made = a_class(tmp_path / "class", students=())
    monkeypatch.chdir(made.folder)
    INBOUND.mkdir(parents=True)
    return made


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str]) -> Says:
    """Runs a command's ``main`` in this process: what it writes. Where it fails, that is a sentence."""

    def run(main: Callable[[list[str]], int], *arguments: str, status: int = 0) -> str:
        capsys.readouterr()
        assert main([*arguments]) == status
        said = capsys.readouterr()
        assert ("error: " in said.err) == bool(status) and "Traceback" not in said.out + said.err, said.err
        return said.out + said.err

    return run


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore::sqlalchemy.exc.SAWarning")  # of nbgrader's gradebook


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox() as box:
        yield box


@pytest.fixture(scope="session")
def one_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[bool], Pool]]:
    """A pool of one sandbox, which all tests of this process share: it takes long to start."""
    with not_waiting_for(tmp_path_factory.mktemp("locks")), Sandbox() as sandbox:
        # It loads what the first notebook needs, so that is all that any chapter does.
        chapters = [plan(build(source)) for source in solution_sources(ROOT)]
        lines = [f"import {name}" for name in to_load([*chain(*chapters)]).modules]
        lines.append("torch.neg(torch.ones(1, device='meta'))")
        first = PlannedCell(0, "given", "\n".join(lines), "a", None)
        sandbox.run([first], assignment="all")
        with pytest.MonkeyPatch.context() as patch:
            for end in ("stop", "close"):  # it does not end with the pool that it is lent to
                patch.setattr(sandbox, end, lambda: None)
            yield lambda _: LocalPool([sandbox])


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server of its own for the tests of this process."""
    server = Postgres()
    yield server
    server.close()
