"""Other versions than those of constraints.txt: those of Colab, and the oldest that are allowed.

All notebooks run on them by `make test-on VERSIONS=colab`, or oldest. The first cell of each fetches
the course in Colab and on Kaggle, and does nothing at all anywhere else. Colab is imitated: the packages that
it publishes (environments/colab.txt), which this course's is not among, `google.colab` loaded, and an empty
folder. The course is fetched from a copy of this repository.
"""

import hashlib
import json
import os
import shutil
import sys
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from filelock import FileLock
from nbclient import NotebookClient
from programs import PATIENCE, commit, python, run
from repository import COURSE, ROOT, SOLUTIONS, all_files, copy_files, notebook

from autograder.authoring.answers import answers_to, submission
from autograder.authoring.builder import build, code_cells
from autograder.authoring.colab import SOURCE
from autograder.authoring.sources import address
from autograder.judging.outcome import MIME

COLAB = ROOT / "environments" / "colab.txt"
# Name -> Python, files that say what is installed, and how pip is called.
PROJECT = ROOT / "pyproject.toml"
OLDEST = ["--resolution", "lowest-direct", "--extra", "course", "ipykernel>=6.17.1", "-r", str(PROJECT)]
VERSIONS = {"colab": ("3.13", [COLAB], ["--requirement", str(COLAB)]), "oldest": ("3.10", [PROJECT], OLDEST)}


def execute(book: nbformat.NotebookNode, python: Path, folder: Path, kernels: Path, env: dict) -> None:
    """Run a notebook in a folder with another Python; where its kernel is, is written below ``kernels``."""
    words = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
    (kernels / "python3").mkdir(parents=True, exist_ok=True)
    kernel = {"argv": words, "display_name": "another", "language": "python"}
    (kernels / "python3/kernel.json").write_text(json.dumps(kernel))
    place = {"metadata": {"path": str(folder)}}
    client = NotebookClient(book, timeout=PATIENCE, startup_timeout=PATIENCE, resources=place)
    client.create_kernel_manager().kernel_spec_manager.kernel_dirs = [str(kernels)]
    client.execute(env=env)


def python_with(name: str) -> Path:
    """The Python of an environment of ``VERSIONS``, in build/versions: installed at the first call.

    Skips the test where it cannot be installed, and says why.
    """
    version, files, arguments = VERSIONS[name]
    base = _interpreter(version)
    told = hashlib.sha256(repr([str(base), arguments, *(path.read_text() for path in files)]).encode())
    folder = ROOT / "build" / "versions" / name
    python, done = folder / "bin" / "python", folder / "installed"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):  # only one of the test processes installs
        if done.is_file() and done.read_text() == told.hexdigest():
            return python
        uv = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        if uv is None:
            pytest.skip("uv is needed, to install other versions")
        shutil.rmtree(folder, ignore_errors=True)
        make = ["venv", "--quiet", "--python", base, folder]
        for command in (make, ["pip", "install", "--quiet", "--python", python, *arguments]):
            made = run(uv, *command)
            if made.returncode:
                shutil.rmtree(folder, ignore_errors=True)
                reason = made.stderr.strip().splitlines()[-1:]
                pytest.skip(f"the versions of {name!r} cannot be installed here: {reason}")
        done.write_text(told.hexdigest())
    return python


def _interpreter(version: str) -> Path:
    """This Python version where it is to be had, and otherwise the one that runs the tests."""
    name = f"python{version}"
    found = shutil.which(name)
    # pyenv has a program for each version it keeps, which works where that one is chosen.
    kept = sorted(Path(found).parents[1].glob(f"versions/{version}.*/bin/{name}")) if found else []
    for path in [*kept, *([Path(found)] if found else []), Path(sys.executable)]:
        if not run(path, "-c", "").returncode:
            return path
    raise AssertionError("the Python that runs this does not run")


@pytest.mark.versions
@pytest.mark.parametrize("path", COURSE + SOLUTIONS, ids=lambda path: f"{path.parts[-2]}/{path.stem}.ipynb")
@pytest.mark.parametrize("versions", VERSIONS)
def test_a_notebook_runs(versions: str, path: Path, tmp_path: Path) -> None:
    if versions == "oldest" and path == ROOT / "course/22_sharding.py":
        pytest.skip("FSDP2 works on a CPU since torch 2.7, as the chapter's head says")
    ran = deepcopy(notebook(path))
    # The package comes from here, as it does from the clone on Colab.
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    execute(ran, python_with(versions), path.parent, tmp_path, here)
    cells = code_cells(ran)
    assert any(cell.outputs for cell in cells)
    if path.parent.parent == ROOT / "solutions":
        shown = [output.get("data", {}) for cell in cells for output in cell.outputs]
        cards = [data[MIME] for data in shown if MIME in data]
        assert cards
        # A race is short here, and the machine may be busy: its verdict is not looked at.
        assert [card for card in cards if card["outcome"] == "failed" and not card.get("laps")] == []
    else:
        # What is in an `if` may depend on the machine.
        before = {cell.id for cell in code_cells(notebook(path)) if cell.outputs}
        always = [cell for cell in cells if cell.id in before and not cell.source.startswith("if ")]
        assert [cell.id for cell in always if not cell.outputs] == []


# The first cell of every notebook.

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

    def execute(self, book: nbformat.NotebookNode, folder: Path) -> None:
        """Run a notebook in a folder, in a kernel of this environment."""
        execute(book, self.python, folder, folder.parent / "kernels", clean_environment())

    def clones(self) -> int:
        """How often the course was fetched; pip did not change what was there."""
        programs = self.log.read_text().splitlines()
        assert all(line.endswith(" --no-deps msgspec") for line in programs if "pip" in line)
        return len([line for line in programs if line.startswith("git clone --quiet --depth=1 ")])


def clean_environment() -> dict[str, str]:
    """This process's environment, without what helps to find the course."""
    return {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}


@pytest.fixture(scope="module")
def colab(tmp_path_factory: pytest.TempPathFactory) -> Colab:
    folder = tmp_path_factory.mktemp("colab")
    base = python_with("colab")
    packages = next(base.parents[1].glob("lib/python*/site-packages"))
    # An environment over that one, which stays as it is.
    assert run(base, "-m", "venv", folder / "environment").returncode == 0
    above = next((folder / "environment").glob("lib/python*/site-packages"))
    (above / "all.pth").write_text(f"{packages}\nimport at_start\n")
    (above / "at_start.py").write_text(AT_START.format(log=str(folder / "programs.log")))
    # A git repository with the files as they are here now.
    copy_files(folder / "repository", all_files())
    commit(folder / "repository")
    return Colab(folder / "environment/bin/python", packages, folder / "programs.log", folder / "repository")


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
    cell = build(ROOT / "course/index.py").cells[0].source
    done = python(code, input=cell, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_page_runs_from_top_to_bottom(colab: Colab, content: Path) -> None:
    book = colab.notebook(ROOT / "course/claims.ipynb")
    colab.execute(book, content)
    assert all(cell.outputs for cell in code_cells(book)[1:])
    # The kernel starts again in the folder where it started; the clone is there, and nothing is fetched.
    colab.execute(book, content)
    assert colab.clones() == 1 and [path.name for path in content.iterdir()] == ["fast-pytorch"]


@pytest.mark.slow
def test_an_exercise_is_checked_and_finds_its_data(colab: Colab, content: Path) -> None:
    path = ROOT / "exercises/14_capstone/14_capstone.ipynb"
    answers = answers_to(path.stem, ROOT)
    book = submission(colab.notebook(path), answers, dict.fromkeys(answers, "solution"))
    ends = [number for number, cell in enumerate(book.cells) if "\ncheck(" in f"\n{cell.source}"]
    book.cells = book.cells[: ends[0] + 1]
    child = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import autograder'], check=True)"
    places = "import autograder, torch\nprint(autograder.__file__, torch.__file__)"
    again = f"{book.cells[0].source}\n{places}"
    book.cells += [nbformat.v4.new_code_cell(code) for code in (child, again)]
    colab.execute(book, content)
    shown = [str(cell.outputs) for cell in code_cells(book)]
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
