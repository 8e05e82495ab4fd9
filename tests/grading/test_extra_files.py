"""Which of the files beside a notebook grading takes: plain ones, not too many, not too large."""

from __future__ import annotations

import os
from pathlib import Path

from autograder.nbgrader_plugin.extra_files import MOST_BYTES, MOST_ENTRIES, MOST_FILES, extra_files


def test_modules_packages_and_data_are_taken(tmp_path: Path) -> None:
    (tmp_path / "parts" / "__pycache__").mkdir(parents=True)
    for name in ("helpers.py", "parts/__init__.py", "parts/weights é.bin"):
        (tmp_path / name).write_bytes(name.encode())
    names = ("01.ipynb", "timestamp.txt", ".hidden", "parts/__pycache__/a.pyc", ".ipynb_checkpoints/a.py")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"not to be taken")
    assert extra_files(tmp_path) == {
        name: name.encode() for name in ("helpers.py", "parts/__init__.py", "parts/weights é.bin")
    }


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


def test_modules_that_nobody_can_read_are_not(tmp_path: Path) -> None:
    unread = ("a.pyc", "b.cpython-311-x86_64-linux-gnu.so")
    for name in (*unread, "c.py"):
        (tmp_path / name).write_text(name)
    assert extra_files(tmp_path) == {**dict.fromkeys(unread), "c.py": b"c.py"}
    assert extra_files(tmp_path / "nobody") == {}  # where nothing was handed in


def test_of_too_many_or_too_large_files_the_small_ones_are_taken(tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(bytes(MOST_BYTES))
    (tmp_path / "small.py").write_text("x")
    found = extra_files(tmp_path)
    assert (found["small.py"], found["large.bin"]) == (b"x", None)
    for number in range(MOST_FILES):
        (tmp_path / f"n{number}.txt").write_text("xy")
    found = extra_files(tmp_path)
    assert found["small.py"] == b"x"
    assert sum(content is not None for content in found.values()) == MOST_FILES


def test_no_more_is_looked_at_than_a_submission_may_have(tmp_path: Path) -> None:
    for number in range(MOST_ENTRIES + 50):
        (tmp_path / f"n{number}").touch()
    assert len(extra_files(tmp_path)) == MOST_ENTRIES
