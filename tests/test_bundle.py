"""The archive from which the course is installed and started without a network."""

import re
import shutil
import sys
import tarfile
import zipfile
from importlib.metadata import distribution, version
from pathlib import Path

import lab_server
import pytest
from programs import commit, environment, printed, run
from repository import ROOT, all_files, copy_files

CUT_OFF = ("bwrap", "--dev-bind", "/", "/", "--unshare-net", "--die-with-parent")

# The course with two requirements instead of a hundred and fifty.
PROJECT = """
[project]
name = "autograder"
version = "7.8"
dependencies = ["tqdm"]

[project.optional-dependencies]
course = ["jupyterlab"]
dev = []

[tool.setuptools.packages.find]
include = ["autograder*"]
"""
# It stands for the real JupyterLab, which is much to install: it passes the call on to the one that is here.
PASS_ON = """\
import os, sys
os.execv({python!r}, [{python!r}, "-m", "jupyterlab", *sys.argv[1:]])
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The course's own files, known to git, with few requirements."""
    here = tmp_path / "checkout"
    folders = r"autograder|course|data|docs|exercises|solutions/01|tests/answers/01|\.ci|\.jupyter"
    copy_files(here, filter(re.compile(rf"({folders})/|[^/]*$").match, all_files()))
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (here / "pyproject.toml").write_text(text[: text.index("[project]")] + PROJECT)
    (here / ".gitignore").write_text((ROOT / ".gitignore").read_text())
    pins = [f"{name}=={version(name)}\n" for name in ("setuptools", "tqdm")]
    (here / "constraints.txt").write_text("".join(pins))
    commit(here)
    (here / "course/my notes.txt").write_text("nobody else's business\n")
    return here


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """What stands for the package index: wheels of what the course with few requirements needs."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in ("setuptools", "tqdm"):
        package = distribution(name)
        with zipfile.ZipFile(folder / f"{name}-{package.version}-py3-none-any.whl", "w") as wheel:
            for file in package.files or ():
                if not {"..", "__pycache__"} & set(file.parts):
                    wheel.write(file.locate(), file)
    info = "jupyterlab-4.0.dist-info"
    with zipfile.ZipFile(folder / "jupyterlab-4.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("jupyter_server/serverapp.py", "def list_running_servers(): return ()\n")
        folders = "def jupyter_data_dir(): return '/'\njupyter_runtime_dir = jupyter_data_dir\n"
        wheel.writestr("jupyter_core/paths.py", folders)
        wheel.writestr("torch/__init__.py", "")
        wheel.writestr("torch/version.py", "cuda = hip = None\n")
        wheel.writestr("jupyterlab/__main__.py", PASS_ON.format(python=sys.executable))
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: jupyterlab\nVersion: 4.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return folder


@pytest.mark.slow
@pytest.mark.needs("bubblewrap")  # it cuts the network off
def test_a_bundle_installs_and_opens_without_a_network(checkout, index, tmp_path):
    wheels = environment(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index))
    said = printed("make", "bundle", f"BASE={sys.executable}", cwd=checkout, env=wheels)
    (archive,) = (path for path in (checkout / "build").iterdir() if path.name != "lib")
    python = "{}.{}".format(*sys.version_info)
    assert archive.name.startswith(f"fast-pytorch-7.8-python{python}-") and archive.suffix == ".tar"
    assert re.search(rf"^build/{archive.name}: [\d.]+M, for Python {python} on ", said, re.MULTILINE)

    place = tmp_path / "another place"
    with tarfile.open(archive) as tar:
        assert {entry.uname for entry in tar} == {"root"}
        tar.extractall(place)
    shutil.rmtree(checkout)
    shutil.rmtree(index)
    (unpacked,) = place.iterdir()
    # A new folder in the checkout does not get in by itself.
    assert {path.name for path in unpacked.iterdir()} == {
        ".ci", ".jupyter", "LICENSE", "LICENSE-text", "Makefile", "README.md", "autograder",
        "constraints.txt", "course", "data", "docs", "exercises", "nbgrader_config.py", "pyproject.toml",
        "wheels",
    }  # fmt: skip
    wheels = {path.name.split("-")[0] for path in (unpacked / "wheels").iterdir()}
    assert wheels == {"setuptools", "tqdm", "jupyterlab", "made"}
    assert not list(unpacked.rglob("my notes.txt"))

    pages = ["/lab/tree/course/index.ipynb", "/api/contents/exercises/01_tensor_creation"]
    opened = run(*CUT_OFF, sys.executable, lab_server.__file__, unpacked, *pages, env=environment())
    opened_pages = [line.split() for line in opened.stdout.splitlines()]
    assert [page for page, _ in opened_pages] == pages, opened.stdout + opened.stderr
    assert all(int(letters) > 100 for _, letters in opened_pages)


@pytest.mark.slow
def test_what_cannot_be_made_leaves_nothing_behind(checkout, index) -> None:
    above = {"PIP_NO_INDEX": "1", "GIT_CEILING_DIRECTORIES": str(checkout.parent)}
    for wheels, said in ((checkout / "empty", "could not download the wheels"), (index, "not a git repo")):
        if wheels == index:
            shutil.rmtree(checkout / ".git")
        there = environment(PIP_FIND_LINKS=str(wheels), **above)
        done = run(checkout / ".ci/bundle", sys.executable, cwd=checkout, env=there)
        assert done.returncode and said in done.stderr
        assert not [*(checkout / "build").glob("*.tar"), *(checkout / "build").glob("bundle-*")]
