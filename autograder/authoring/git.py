"""git, as the course's commands call it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ..command_line import CommandError


class GitError(CommandError):
    """git is not there, or it refused. The message says which, in git's words."""


def git(root: Path, *arguments: str) -> str:
    """What ``git`` prints when it is called with ``arguments`` in ``root``. Raises GitError."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise GitError("git is not installed") from None
    if done.returncode:
        raise GitError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout
