"""The archive from which the course is installed and started without a network."""

import platform
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
from repository import ROOT, copy_files

from autograder.authoring import bundle

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
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    here = tmp_path / "checkout"
    more = ["solutions/01_tensor_creation/01_tensor_creation.py", "tests/answers/01_tensor_creation.py"]
    copy_files(here, [*bundle.course_files(ROOT), *more])
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
    assert archive.name.startswith(f"fast-pytorch-7.8-py{python}-") and archive.suffix == ".tar"
    assert re.search(rf"^build/{archive.name}: [\d.]+ MB, for Python {python} on ", said, re.MULTILINE)

    place = tmp_path / "another place"
    with tarfile.open(archive) as tar:
        assert not any(entry.uname or entry.uid for entry in tar)
        tar.extractall(place)
    shutil.rmtree(checkout)
    shutil.rmtree(index)
    (unpacked,) = place.iterdir()
    # A new folder in the checkout does not get in by itself.
    found = {path.name for path in unpacked.iterdir()}
    assert found == {
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


# What goes wrong leaves nothing behind.


@pytest.mark.slow
def test_a_full_disk_a_failing_pip_and_a_folder_without_git_are_told(checkout, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bundle, "ROOT", checkout)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9e9, 9e9 - 1e3, 1e3))
    assert bundle.main([]) == 1
    said = r"error: making a bundle takes about [\d.]+ [GM]B of disk, and .* has 0.0 MB left"
    assert re.match(said, capsys.readouterr().err)
    monkeypatch.setattr(bundle, "require_space", lambda folder: None)
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    assert bundle.main([]) == 1
    assert "error: pip could not download the wheels" in capsys.readouterr().err
    assert not list((checkout / "build").iterdir())
    with pytest.raises(bundle.BundleError, match="git does not tell which files belong to the course"):
        bundle.make_bundle(tmp_path)


# For whom it is.

WHEELS = [
    "tqdm-4.7-py3-none-any.whl",
    "numpy-2.4-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_28_x86_64.whl",
    "debugpy-1.8-cp311-cp311-manylinux_2_24_x86_64.whl",
]


@pytest.mark.parametrize(("name", "kind"), [("Linux", "glibc"), ("Darwin", "macOS")])
def test_an_older_system_is_refused(tmp_path, monkeypatch, name, kind):
    def run_on(number: str) -> None:
        monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", number))
        monkeypatch.setattr(platform, "mac_ver", lambda: (number, ("", "", ""), "arm64"))

    monkeypatch.setattr(platform, "system", lambda: name)
    note = tmp_path / "made-for.txt"
    wheels = WHEELS if name == "Linux" else [wheel.replace("manylinux", "macosx") for wheel in WHEELS]
    note.write_text(bundle.made_for(wheels))
    assert note.read_text().endswith(f", {kind} 2.24 or newer")
    for number in ("2.24", "2.36", "10.1"):
        run_on(number)
        bundle.require_fit(str(note))
    run_on("2.9")
    said = rf"error: this bundle is for .*, {kind} 2.24 or newer, but .* 2.9\."
    with pytest.raises(SystemExit, match=said):
        bundle.require_fit(str(note))
    # Wheels without machine code fit every system of their Python.
    assert bundle.made_for(WHEELS[:1]) == bundle.this_python()
