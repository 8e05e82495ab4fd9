"""Where submitted files are read: a sound notebook or a sentence comes out, and some files beside it."""

import errno
import logging
import os
from pathlib import Path

import pytest
from nbgrader.coursedir import CourseDirectory
from test_bad_inputs import TIMES

from autograder.nbgrader_plugin import reading
from autograder.nbgrader_plugin.reading import NotPlain, extra_files, read_plain
from autograder.nbgrader_plugin.submissions import problem_of, read_or_explain, timestamp_of


def test_a_file_that_grows_is_read_to_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "growing"
    path.write_bytes(bytes(2_000_001))
    with pytest.raises(NotPlain, match=r"^larger than 2 MB"):
        read_plain(path, 2_000_000)
    real = reading._require_plain  # the file was smaller when it was looked at
    monkeypatch.setattr(
        reading, "_require_plain", lambda about, most, size=0: size and real(about, most, size)
    )
    with pytest.raises(NotPlain, match=r"^larger than 2 MB"):
        read_plain(path, 2_000_000)


def test_what_may_not_be_read_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for who is not root, who may read everything."""

    def forbid(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    for name in ("traps.ipynb", "timestamp.txt"):
        (tmp_path / name).write_text("2030-01-01 10:00:00 UTC")
    monkeypatch.setattr(reading.os, "open", forbid)
    shown = read_or_explain(tmp_path / "traps.ipynb", logging.getLogger("reading"))
    assert problem_of(shown) == "The file `traps.ipynb` cannot be read: Permission denied."
    assert timestamp_of(CourseDirectory(), tmp_path) is None


def test_a_time_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    assert timestamp_of(CourseDirectory(), str(tmp_path)) is None
    for name, content in TIMES.items():
        (tmp_path / "timestamp.txt").write_bytes(content)
        assert timestamp_of(CourseDirectory(), str(tmp_path)) is None, name
    (tmp_path / "timestamp.txt").write_text("2030-01-01 10:00:00 Europe/Paris\n")
    assert str(timestamp_of(CourseDirectory(), tmp_path)) == "2030-01-01 09:00:00"


def test_modules_packages_and_data_are_taken_but_none_that_nobody_can_read(tmp_path: Path) -> None:
    taken = ("helpers.py", "parts/__init__.py", "parts/weights é.bin")
    unread = ("a.pyc", "b.cpython-311-x86_64-linux-gnu.so")
    others = ("01.ipynb", "timestamp.txt", ".hidden", "parts/__pycache__/a.pyc", ".ipynb_checkpoints/a.py")
    for name in (*taken, *unread, *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    assert extra_files(tmp_path) == {name: name.encode() for name in taken} | dict.fromkeys(unread)
    assert extra_files(tmp_path / "nobody") == {}  # where nothing was handed in


def test_links_and_what_is_no_file_are_not(tmp_path: Path) -> None:
    folder, secret = tmp_path / "submission", tmp_path / "secret"
    folder.mkdir()
    secret.write_text("secret")
    (folder / "soft.py").symlink_to(secret)
    (folder / "hard.py").hardlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.py")
    os.mkfifo(os.fsencode(folder) + b"/\xff.py")
    (folder / "mine.py").write_text("mine")
    assert extra_files(folder) == {"hard.py": None, "mine.py": b"mine"}


def test_of_too_many_or_too_large_files_the_small_ones_are_taken(tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(bytes(reading.MOST_EXTRA))
    (tmp_path / "small.py").write_text("x")
    found = extra_files(tmp_path)
    assert (found["small.py"], found["large.bin"]) == (b"x", None)
    for number in range(reading.MOST_FILES):
        (tmp_path / f"n{number}.txt").write_text("xy")
    found = extra_files(tmp_path)
    assert found["small.py"] == b"x"
    assert sum(content is not None for content in found.values()) == reading.MOST_FILES
    for number in range(reading.MOST_ENTRIES):
        (tmp_path / f"n{number}").touch()
    assert len(extra_files(tmp_path)) == reading.MOST_ENTRIES  # no more is looked at
