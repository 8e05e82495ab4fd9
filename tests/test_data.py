"""The data in the repository: small, and of known origin; and how files are written."""

import fnmatch
import re

import pytest
from repository import ROOT

from autograder.files import write_whole


def test_data_is_small_and_the_origin_of_every_file_is_stated():
    paths = [path for path in (ROOT / "data").rglob("*") if path.is_file()]
    paths = [path for path in paths if not {"__pycache__", "timings"} & set(path.parts)]
    assert sum(path.stat().st_size for path in paths) < 3_000_000
    table = (ROOT / "data/LICENSES.md").read_text(encoding="utf-8")
    stated = re.findall(r"^\| `([^`]+)` \| .+ \| .+ \|", table, re.MULTILINE)
    for path in paths:
        name = path.relative_to(ROOT / "data").as_posix()
        if path.suffix in {".jpg", ".png", ".npz"} or name.startswith("texts/"):
            assert any(fnmatch.fnmatch(name, pattern) for pattern in stated), name
    for pattern in stated:
        assert list((ROOT / "data").glob(pattern)), f"{pattern} is not there"


def test_a_file_is_written_whole_or_left_as_it_was(tmp_path):
    path = tmp_path / "new" / "file.txt"
    write_whole(path, "old ×\n")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "x" * 100_000 + "\ud800")
    assert path.read_bytes() == "old ×\n".encode()
    write_whole(path, "new")
    assert path.read_text() == "new"
    for no_place in (path / "below", path.parent):
        with pytest.raises(OSError):
            write_whole(no_place, "text")
    assert list(path.parent.iterdir()) == [path] and list(tmp_path.iterdir()) == [path.parent]
