"""Where the percent scripts are, and the repository's address: nothing but Python is imported.

pyproject.toml has the address; the build writes it into the pages that cannot read it there.
"""

import re
from pathlib import Path

from ..command_line import CommandError

# `[project.urls]` of pyproject.toml is the one place for it.
ADDRESS = re.compile(r'^Repository = "(https://github\.com/[\w.-]+/[\w.-]+)"$', re.MULTILINE)
# What the README says was written before.
WRITTEN = re.compile(r"//mybinder\.org/v2/gh/([\w.-]+)/([\w.-]+)")
PAGES = ("README.md", "CITATION.cff", "docs/*.md", ".github/ISSUE_TEMPLATE/*.yml")


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


def address(root: Path) -> str:
    """The repository's address. Raises BuildError where there is none."""
    if not (found := ADDRESS.search((root / "pyproject.toml").read_text(encoding="utf-8"))):
        raise BuildError('pyproject.toml lacks a line `Repository = "https://github.com/owner/name"`')
    return found[1]


def write_address(root: Path) -> None:
    """Write the repository's address into the pages that have another one."""
    owner, name = address(root).split("/")[-2:]
    said = WRITTEN.search((root / "README.md").read_text(encoding="utf-8"))
    if not said or said.groups() == (owner, name):
        return
    before, its_name = map(re.escape, said.groups())
    # In nbgitpuller's links, a slash is written %2F. Others' names may begin with these.
    old = re.compile(rf"(?:(?<=[/:])|(?<=%2F))(?:{before}(/|%2F)|(?<=lab%2Ftree%2F)){its_name}(?![\w-])")
    for page in [page for pattern in PAGES for page in sorted(root.glob(pattern))]:
        text = page.read_text(encoding="utf-8")
        moved = old.sub(lambda found: f"{owner}{found[1]}{name}" if found[1] else name, text)
        if moved != text:
            page.write_text(moved, encoding="utf-8")
