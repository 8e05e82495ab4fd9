"""A file is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.files import write_whole


def test_a_file_is_written_whole_or_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    write_whole(path, "old ×\n")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "x" * 100_000 + "\ud800")
    assert path.read_bytes() == "old ×\n".encode()
    write_whole(path, "new")
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_what_cannot_be_written_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        write_whole(tmp_path / "file" / "below", "text")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        write_whole(tmp_path / "folder", "text")
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder"}
