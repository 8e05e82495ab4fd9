"""The files that a student handed in beside the notebook: modules of their own, small data."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .reading import NotPlain, read_plain

MOST_FILES, MOST_BYTES = 100, 5_000_000
MOST_ENTRIES = 2000  # to look at in one submission
PASSED_OVER = {"__pycache__", "timestamp.txt"}  # that is nbgrader's
COMPILED = {".pyc", ".so"}  # modules that nobody can look into


def extra_files(folder: Path) -> dict[str, bytes | None]:
    """What the regular files in a submission's folder hold, by their paths in it.

    Notebooks, hidden files and Python's caches are passed over. None stands for what is not taken: links,
    compiled modules, and of more than ``MOST_FILES`` or ``MOST_BYTES`` all but the smallest.
    """
    found: dict[str, bytes | None] = {}
    room = MOST_BYTES
    for size, path in sorted(_files(folder)):
        content = None
        if size <= room and len(found) < MOST_FILES and path.suffix not in COMPILED:
            with suppress(NotPlain, OSError):
                content = read_plain(path, room)
        found[path.relative_to(folder).as_posix()] = content
        room -= len(content or b"")
    return found


def _files(folder: Path) -> Iterator[tuple[int, Path]]:
    """The files that may be taken, with their sizes."""
    entries = 0
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if _is_taken(name)]
        entries += len(folders)
        for name in names:
            entries += 1
            if entries > MOST_ENTRIES:
                return
            path = Path(place, name)
            with suppress(OSError):  # it has just gone
                if _is_taken(name) and stat.S_ISREG((about := path.lstat()).st_mode):
                    yield about.st_size, path


def _is_taken(name: str) -> bool:
    """Whether a file or folder of this name is taken."""
    if name.startswith(".") or name.endswith(".ipynb") or name in PASSED_OVER:
        return False
    return name.isprintable()  # a name that is no text has surrogates, which are not
