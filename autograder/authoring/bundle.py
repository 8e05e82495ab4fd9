"""The course's files, as git knows them, for archives."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from ..command_line import CommandError


class BundleError(CommandError):
    """An archive that cannot be made. The message says why."""


def course_files(root: Path, contents: Iterable[str]) -> list[str]:
    """The files of an archive, as paths below `root`. Raises BundleError outside a git checkout."""
    command = ["git", "ls-files", "-z", *contents]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise BundleError("git was not found; it tells which files belong to the course.") from None
    except subprocess.CalledProcessError as error:
        raise BundleError(f"git does not tell which files belong to the course: {error.stderr}") from None
    return [path for path in listed.stdout.split("\0") if path and (root / path).is_file()]
