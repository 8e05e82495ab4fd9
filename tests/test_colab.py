"""The first cell of every notebook: the course in Colab and on Kaggle, and nothing at all anywhere else.

Colab is imitated: the packages that it publishes (environments/colab.txt), which this course's is not among,
`google.colab` loaded, and an empty folder. The course is fetched from a copy of this repository.
"""

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import nbformat
import pytest
from other_versions import execute, python_with
from programs import commit, git, python, run
from repository import COURSE, EXERCISES, ROOT

from autograder.authoring import builder, links
from autograder.authoring.answers import answers_to, submission
from autograder.authoring.colab import SOURCE

ADDRESS = links.address(ROOT)
NOTEBOOKS = [path.with_suffix(".ipynb") for path in COURSE] + EXERCISES

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

# Runs the first two code cells of many notebooks. Each gets a process of its own, which has imported torch
# already (or this would take minutes), but not the course.
STARTS = """\
import json, os, sys
import matplotlib.figure, torch, torch.distributed, torchvision.transforms.v2
before = torch.__file__, os.stat(torch.__file__).st_mtime_ns
for name in ("autograder", "pip"):
    try:
        __import__(name)
    except ImportError:
        continue
    sys.exit(f"{name} is here before the first cell")
print("torch", torch.__file__)
for name, folder, cells in json.loads(sys.stdin.read()):
    if not os.fork():
        os.chdir(folder)
        names = {"__name__": "__main__"}
        for cell in [cells[0], *cells]:  # the first one twice
            exec(compile(cell, name, "exec"), names)
        import autograder
        home = os.path.join(os.path.realpath(folder), "fast-pytorch")
        assert autograder.__file__ == os.path.join(home, "autograder/__init__.py"), autograder.__file__
        assert os.path.isfile(name), f"{name} is not in {os.getcwd()}"
        assert os.listdir(folder) == ["fast-pytorch"], os.listdir(folder)
        assert sys.path[0] == os.environ["PYTHONPATH"] == home
        assert before == (torch.__file__, os.stat(torch.__file__).st_mtime_ns)
        print("started", name, flush=True)
        os._exit(0)
    if os.wait()[1]:
        sys.exit(f"{name} does not start")
"""


@dataclass(frozen=True)
class Colab:
    """The imitation: its Python, where its packages are, the log of the programs it started, the repository
    that it fetches.
    """

    python: Path
    packages: Path
    log: Path
    repository: Path

    def run(self, code: str, folder: Path, **more) -> CompletedProcess[str]:
        """Run Python code in a folder."""
        return run(self.python, "-c", code, cwd=folder, **({"env": clean_environment()} | more))

    def notebook(self, path: Path) -> nbformat.NotebookNode:
        """A notebook of the course with the repository's address replaced."""
        text = path.read_text(encoding="utf-8").replace(ADDRESS, f"file://{self.repository}")
        return nbformat.reads(text, as_version=4)

    def execute(self, notebook: nbformat.NotebookNode, folder: Path) -> None:
        """Run a notebook in a folder, in a kernel of this environment."""
        execute(notebook, self.python, folder, folder.parent / "kernels", clean_environment())

    def programs(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


def clean_environment() -> dict[str, str]:
    """This process's environment, without what helps to find the course."""
    return {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}


@pytest.fixture(scope="module")
def colab(tmp_path_factory: pytest.TempPathFactory) -> Colab:
    if not (shutil.which("git") and (ROOT / ".git").exists()):
        pytest.skip("git is not installed, or this is no git checkout")
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
    for name in git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if name and (ROOT / name).is_file():
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, repository / name)
    commit(repository)
    return Colab(folder / "environment/bin/python", packages, folder / "programs.log", repository)


@pytest.fixture
def content(colab: Colab, tmp_path: Path) -> Path:
    """The empty folder in which Colab starts; the log of programs is empty, too."""
    colab.log.unlink(missing_ok=True)
    (tmp_path / "content").mkdir()
    return tmp_path / "content"


def clones(programs: list[str]) -> int:
    """How often the course was fetched; no program was pip."""
    assert not [line for line in programs if "pip" in line.split() or "/pip " in line]
    return len([line for line in programs if line.startswith("git clone --quiet --depth=1 ")])


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


# In Colab.


@pytest.mark.slow
def test_every_notebook_starts(colab: Colab, tmp_path: Path) -> None:
    work = []
    for number, path in enumerate(NOTEBOOKS):
        (tmp_path / str(number)).mkdir()
        # git copies from a path much faster than through file://.
        cells = [cell.source.replace("file://", "") for cell in builder.code_cells(colab.notebook(path))[:2]]
        work.append((path.name, str(tmp_path / str(number)), cells))
    colab.log.unlink(missing_ok=True)
    done = colab.run(STARTS, tmp_path, input=json.dumps(work))
    started = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("started ")]
    assert started == [path.name for path in NOTEBOOKS], done.stdout + done.stderr
    assert f"torch {colab.packages / 'torch/__init__.py'}\n" in done.stdout
    assert clones(colab.programs()) == len(started)


@pytest.mark.slow
def test_a_page_runs_from_top_to_bottom(colab: Colab, content: Path) -> None:
    notebook = colab.notebook(ROOT / "course/claims.ipynb")
    colab.execute(notebook, content)
    assert all(cell.outputs for cell in builder.code_cells(notebook)[1:])
    # The kernel starts again in the folder where it started; the clone is there, and nothing is fetched.
    colab.execute(notebook, content)
    assert clones(colab.programs()) == 1


@pytest.mark.slow
def test_an_exercise_is_checked_and_finds_its_data(colab: Colab, content: Path) -> None:
    path = ROOT / "exercises/14_capstone/14_capstone.ipynb"
    answers = answers_to(path.stem, ROOT)
    notebook = submission(colab.notebook(path), answers, dict.fromkeys(answers, "solution"))
    ends = [number for number, cell in enumerate(notebook.cells) if "\ncheck(" in f"\n{cell.source}"]
    notebook.cells = notebook.cells[: ends[0] + 1]
    child = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import autograder'], check=True)"
    notebook.cells += [nbformat.v4.new_code_cell(code) for code in (child, "import torch\ntorch.__file__")]
    colab.execute(notebook, content)
    shown = [str(cell.outputs) for cell in builder.code_cells(notebook)]
    assert "passed" in shown[-3], shown[-3]
    assert str(colab.packages) in shown[-1]
    assert clones(colab.programs()) == 1


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
@pytest.mark.parametrize("address", ["file:///no/such/folder", ADDRESS])
def test_a_failed_fetch_says_so(colab: Colab, content: Path, address: str, site: dict[str, str]) -> None:
    # No network, wherever this runs.
    cut_off = dict.fromkeys(("https_proxy", "HTTPS_PROXY"), "http://127.0.0.1:9")
    cell = SOURCE.format(address=address, folder="course")
    done = colab.run(cell, content, env=clean_environment() | site | cut_off)
    last = done.stderr.split("RuntimeError: ")[-1]
    hint = "On Kaggle, switch Internet on, in the settings on the right. " if site else ""
    said = f"The course could not be fetched. {hint}git says: "
    assert done.returncode and last.startswith(said), done.stderr
    assert "fatal: " in last and address.removeprefix("file://") in last
    assert not list(content.iterdir())
