"""The first cell of every notebook: the course in Colab and on Kaggle, and nothing at all anywhere else.

Colab is imitated: the packages that it publishes (environments/colab.txt), which this course's is not among,
`google.colab` loaded, and an empty folder. The course is fetched from a copy of this repository.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from other_versions import execute, python_with
from programs import commit, python, run
from repository import ROOT, all_files, copy_files

from autograder.authoring import builder
from autograder.authoring.answers import answers_to, submission
from autograder.authoring.colab import SOURCE
from autograder.authoring.sources import address

ADDRESS = address(ROOT)
# What a Python of this Colab does at its start: it loads `google.colab`, and writes down which programs it
# starts.
AT_START = """\
import sys, types
sys.modules["google.colab"] = types.ModuleType("google.colab")
def note(event, arguments):
    if event == "subprocess.Popen":
        with open({log!r}, "a") as file:
            print(*arguments[1], file=file)
sys.addaudithook(note)
"""


@dataclass(frozen=True)
class Colab:
    """Its Python and packages, the log of the programs that were started, the repository that it fetches."""

    python: Path
    packages: Path
    log: Path
    repository: Path

    def notebook(self, path: Path) -> nbformat.NotebookNode:
        """A notebook of the course with the repository's address replaced."""
        text = path.read_text(encoding="utf-8").replace(ADDRESS, f"file://{self.repository}")
        return nbformat.reads(text, as_version=4)

    def execute(self, notebook: nbformat.NotebookNode, folder: Path) -> None:
        """Run a notebook in a folder, in a kernel of this environment."""
        execute(notebook, self.python, folder, folder.parent / "kernels", clean_environment())

    def clones(self) -> int:
        """How often the course was fetched; no program was pip."""
        programs = self.log.read_text().splitlines()
        assert not [line for line in programs if "pip" in line.split() or "/pip " in line]
        return len([line for line in programs if line.startswith("git clone --quiet --depth=1 ")])


def clean_environment() -> dict[str, str]:
    """This process's environment, without what helps to find the course."""
    return {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}


@pytest.fixture(scope="module")
def colab(tmp_path_factory: pytest.TempPathFactory) -> Colab:
    files = all_files()
    folder = tmp_path_factory.mktemp("colab")
    base = python_with("colab")
    packages = next(base.parents[1].glob("lib/python*/site-packages"))
    # An environment over that one, which stays as it is.
    assert run(base, "-m", "venv", "--without-pip", folder / "environment").returncode == 0
    above = next((folder / "environment").glob("lib/python*/site-packages"))
    (above / "all.pth").write_text(f"{packages}\nimport at_start\n")
    (above / "at_start.py").write_text(AT_START.format(log=str(folder / "programs.log")))
    # A git repository with the files as they are here now.
    repository = folder / "repository"
    copy_files(repository, files)
    commit(repository)
    return Colab(folder / "environment/bin/python", packages, folder / "programs.log", repository)


@pytest.fixture
def content(colab: Colab, tmp_path: Path) -> Path:
    """The empty folder in which Colab starts; the log of programs is empty, too."""
    colab.log.unlink(missing_ok=True)
    (tmp_path / "content").mkdir()
    return tmp_path / "content"


def test_elsewhere_it_does_nothing(tmp_path: Path) -> None:
    code = """\
import os, sys
before = os.getcwd(), list(sys.path), dict(os.environ), set(sys.modules), sorted(os.listdir())
def forbidden(event, arguments):
    assert event in ("compile", "exec"), event
source = sys.stdin.read()
names = {}
sys.addaudithook(forbidden)
exec(source, names)
assert before[:4] == (os.getcwd(), list(sys.path), dict(os.environ), set(sys.modules))
del names["__builtins__"]
assert list(names) == ["os", "sys"], names
"""
    cell = builder.build(ROOT / "course/index.py").cells[0].source
    done = python(code, input=cell, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_page_runs_from_top_to_bottom(colab: Colab, content: Path) -> None:
    notebook = colab.notebook(ROOT / "course/claims.ipynb")
    colab.execute(notebook, content)
    assert all(cell.outputs for cell in builder.code_cells(notebook)[1:])
    # The kernel starts again in the folder where it started; the clone is there, and nothing is fetched.
    colab.execute(notebook, content)
    assert colab.clones() == 1
    assert [path.name for path in content.iterdir()] == ["fast-pytorch"]


@pytest.mark.slow
def test_an_exercise_is_checked_and_finds_its_data(colab: Colab, content: Path) -> None:
    path = ROOT / "exercises/14_capstone/14_capstone.ipynb"
    answers = answers_to(path.stem, ROOT)
    notebook = submission(colab.notebook(path), answers, dict.fromkeys(answers, "solution"))
    ends = [number for number, cell in enumerate(notebook.cells) if "\ncheck(" in f"\n{cell.source}"]
    notebook.cells = notebook.cells[: ends[0] + 1]
    child = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import autograder'], check=True)"
    places = "import autograder, torch\nprint(autograder.__file__, torch.__file__)"
    again = f"{notebook.cells[0].source}\n{places}"
    notebook.cells += [nbformat.v4.new_code_cell(code) for code in (child, again)]
    colab.execute(notebook, content)
    shown = [str(cell.outputs) for cell in builder.code_cells(notebook)]
    assert "passed" in shown[-3], shown[-3]
    assert f"{content}/fast-pytorch/autograder/__init__.py {colab.packages}/torch/" in shown[-1]
    assert colab.clones() == 1


KAGGLE = {"KAGGLE_KERNEL_RUN_TYPE": "Interactive"}


@pytest.mark.slow
def test_kaggle_gets_the_course_too(colab: Colab, tmp_path: Path) -> None:
    cell = SOURCE.format(address=colab.repository, folder="course")
    code = f"{cell}\nimport autograder\nprint(os.getcwd(), autograder.__file__)"
    # Without Colab's module: a Python that has nothing but its own library.
    words = (sys.executable, "-I", "-S", "-c", f"import sys; sys.modules['torch'] = None\n{code}")
    done = run(*words, cwd=tmp_path, env=clean_environment() | KAGGLE)
    home = tmp_path / "fast-pytorch"
    assert done.stdout == f"{home}/course {home}/autograder/__init__.py\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("site", [{}, KAGGLE], ids=["Colab", "Kaggle"])
def test_a_failed_fetch_says_so(colab: Colab, content: Path, site: dict[str, str]) -> None:
    # No network, wherever this runs.
    cut_off = dict.fromkeys(("https_proxy", "HTTPS_PROXY"), "http://127.0.0.1:9")
    cell = SOURCE.format(address=ADDRESS, folder="course")
    done = run(colab.python, "-c", cell, cwd=content, env=clean_environment() | site | cut_off)
    last = done.stderr.split("RuntimeError: ")[-1]
    hint = "On Kaggle, switch Internet on, in the settings on the right. " if site else ""
    said = f"The course could not be fetched. {hint}git says: "
    assert done.returncode and last.startswith(said), done.stderr
    assert "fatal: " in last and ADDRESS in last
    assert not list(content.iterdir())
