"""A release: the version in every file that says it, a commit, and a tag. Nothing is sent anywhere."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

from ..command_line import CommandError
from .git import git

VERSION = re.compile(r"\d+\.\d+\.\d+")
# File -> the line that says the version.
SAID_IN = {
    "pyproject.toml": re.compile(r'^(version = ")[^"]*(")$', re.MULTILINE),
    "CITATION.cff": re.compile(r"^(version: )\S+()$", re.MULTILINE),
}
UNRELEASED = "## Unreleased\n"


class ReleaseError(CommandError):
    """The release was not made, and no file was changed. The message says why."""


def make_release(root: Path, version: str) -> list[str]:
    """Make ``version`` (as in ``1.2.0``) of the repository at ``root``; gives the names of the changed files.

    What CHANGELOG.md lists as unreleased becomes this version's, with today's date. Raises ReleaseError where
    ``version`` is no version or there is one already, where git has changes that are not committed, or where
    nothing is listed as unreleased; and GitError.
    """
    if not VERSION.fullmatch(version):
        raise ReleaseError(f"{version or 'nothing'!r} is not a version; as in make release VERSION=1.2.0")
    tag = f"v{version}"
    if git(root, "tag", "--list", tag).strip():
        raise ReleaseError(f"there is a version {version} already")
    if dirty := git(root, "status", "--porcelain", "--untracked-files=no"):
        raise ReleaseError(f"commit or undo your changes first:\n{dirty.rstrip()}")
    texts = {name: (root / name).read_text(encoding="utf-8") for name in [*SAID_IN, "CHANGELOG.md"]}
    for name, line in SAID_IN.items():
        texts[name], found = line.subn(rf"\g<1>{version}\g<2>", texts[name])
        if found != 1:
            raise ReleaseError(f"{name} says its version {found} times, not once")
    before, heading, after = texts["CHANGELOG.md"].partition(UNRELEASED)
    if not heading or after.lstrip().startswith("## ") or not after.strip():
        raise ReleaseError(f"CHANGELOG.md lists nothing below {UNRELEASED.strip()!r}")
    title = f"## {version} ({date.today().isoformat()})\n"
    texts["CHANGELOG.md"] = f"{before}{heading}\n{title}{after}"
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8")
    git(root, "commit", "--quiet", "--message", f"Version {version}", "--", *texts)
    git(root, "tag", "--annotate", "--message", f"Version {version}", tag)
    return list(texts)
