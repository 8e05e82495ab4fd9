"""Where the percent scripts are, for whoever needs no more of them: nothing but Python is imported."""

from pathlib import Path

from ..command_line import CommandError


class BuildError(CommandError):
    """A notebook that cannot be built. The message says where and why."""


def find_root(start: Path | None = None) -> Path:
    """The repository that `start` (the current folder) is in. Raises BuildError when there is none."""
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / "course").is_dir() and (folder / "pyproject.toml").is_file():
            return folder
    raise BuildError(f"{start} is not inside the course's repository (no course/ and pyproject.toml found)")


def chapter_sources(root: Path) -> list[Path]:
    """The chapters' percent scripts, in reading order (the index comes last)."""
    return sorted((root / "course").glob("*.py"))


def solution_sources(root: Path) -> list[Path]:
    """The solutions' percent scripts, solutions/NN_topic/NN_topic.py."""
    return sorted(path for path in (root / "solutions").glob("*/*.py") if path.stem == path.parent.name)
