"""Where submitted files are read: whatever is there, a sound notebook or a sentence comes out."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import nbformat
import pytest
from bad_inputs import ODD, ONE_LOST, TIMES, WRONG
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from pretend_class import answered

from autograder.authoring.builder import build
from autograder.nbgrader_plugin.reading import NotPlain, TooLarge, read_plain
from autograder.nbgrader_plugin.submissions import (
    problem_of,
    read_or_explain,
    timestamp_of,
)

LOG = logging.getLogger("reading")


@pytest.fixture(scope="module")
def release() -> NotebookNode:
    return build(Path(__file__).parent / "traps.py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the notebook is expected, in a course's folder."""
    path = tmp_path / "submitted" / "ada" / "traps" / "traps.ipynb"
    path.parent.mkdir(parents=True)
    (tmp_path / "gradebook.db").write_text("secret")
    return path


def explained(path: Path) -> str:
    """The sentence in place of a notebook."""
    notebook = read_or_explain(path, LOG)
    problem = problem_of(notebook)
    assert problem and problem in notebook.cells[0].source
    assert len(problem) < 1000 and "secret" not in problem
    assert nbformat.writes(notebook).encode()
    return problem


@pytest.mark.parametrize("name", {**ODD, **ONE_LOST, **WRONG})
def test_a_notebook_is_read_or_explained(name: str, path: Path, release: NotebookNode) -> None:
    """What becomes of it, and of what lies in its place or beside it: test_bad_inputs.py, with grading."""
    path.write_bytes({**ODD, **ONE_LOST, **WRONG}[name](release))
    if name in WRONG:
        explained(path)
        return
    notebook = read_or_explain(path, LOG)
    assert problem_of(notebook) is None
    nbformat.validate(notebook)
    assert nbformat.writes(notebook).encode()
    names = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    assert all(name is None or len(name) <= 200 for name in names)
    assert not any(cell.get("outputs") for cell in notebook.cells)


def test_a_sentence_says_what_is_there(path: Path) -> None:
    os.mkfifo(path)
    assert "`traps.ipynb` is a pipe, and no file of its own." in explained(path)
    path.unlink()
    path.mkdir()
    assert "`traps.ipynb` is a folder" in explained(path)
    path.rmdir()
    os.link(path.parents[3] / "gradebook.db", path)
    assert "a file with a second name (a hard link)" in explained(path)


def test_a_file_that_grows_is_read_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(b"")
    done = threading.Event()

    def grow() -> None:
        with path.open("ab", buffering=0) as file:
            while not done.is_set():
                file.write(bytes(1 << 16))

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        while path.stat().st_size < 10_000_000:
            try:
                assert len(read_plain(path, 10_000_000)) <= 10_000_000
            except TooLarge:
                break
    finally:
        done.set()
        thread.join()
    with pytest.raises(TooLarge, match="MB"):
        read_plain(path, 1000)


WITHOUT_RIGHTS = """
import logging, sys
from pathlib import Path
from autograder.sandbox.linux import drop_rights
from autograder.nbgrader_plugin.submissions import problem_of, read_or_explain, remove_links, timestamp_of
drop_rights()
path = Path(sys.argv[1])
class Converter: log = logging.getLogger()
remove_links(Converter, path.parent)
print(timestamp_of(Converter, path.parent), problem_of(read_or_explain(path, Converter.log)))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="capabilities are Linux's")
def test_what_may_not_be_read_is_explained(path: Path, release: NotebookNode) -> None:
    """In a process without the rights to read everything, which root has."""
    path.write_text(nbformat.writes(answered(release)))
    path.with_name("timestamp.txt").write_text("2030-01-01 10:00:00 UTC")
    path.with_name("folder").mkdir()
    path.with_name("link").symlink_to("folder")
    for name in ("traps.ipynb", "timestamp.txt", "folder"):
        path.with_name(name).chmod(0)
    command = [sys.executable, "-c", WITHOUT_RIGHTS, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
        path.parent.chmod(stat.S_IRUSR)  # its names can be listed, and nothing more
        listed = subprocess.run(command, capture_output=True, text=True)
    finally:
        path.parent.chmod(0o700)
    sentence = "None The file `traps.ipynb` cannot be read: Permission denied.\n"
    assert (done.stdout, listed.stdout) == (sentence, sentence), done.stderr + listed.stderr


def test_a_time_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    assert timestamp_of(CourseDirectory(), str(tmp_path)) is None
    for name, content in TIMES.items():
        (tmp_path / "timestamp.txt").write_bytes(content)
        assert timestamp_of(CourseDirectory(), str(tmp_path)) is None, name
    (tmp_path / "timestamp.txt").write_text("2030-01-01 10:00:00 Europe/Paris\n")
    assert str(timestamp_of(CourseDirectory(), tmp_path)) == "2030-01-01 09:00:00"


def test_only_plain_files_are_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    assert read_plain(tmp_path / "file", 1) == b"x"
    with pytest.raises(NotPlain, match="a link to something else"):
        read_plain(tmp_path / "link", 1)
    with pytest.raises(FileNotFoundError):
        read_plain(tmp_path / "nothing", 1)
