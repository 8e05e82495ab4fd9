"""The repository's address: where it is written down, and how it is changed everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat

from ..command_line import CommandError
from .git import git

# `[project.urls]` of pyproject.toml is the one place for it.
ADDRESS = re.compile(r'^Repository = "(https://github\.com/([\w.-]+/[\w.-]+))"$', re.MULTILINE)
# What GitHub accepts as the names of an owner and of a repository.
REPOSITORY = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*/(?!\.\.?$)(?!.*\.git$)[\w.-]{1,100}", re.ASCII)


class LinksError(CommandError):
    """The address is missing, or it cannot be changed. The message says why."""


def address(root: Path) -> str:
    """The repository's address, from pyproject.toml. Raises LinksError where there is none."""
    return _address(root)[1]


def repository(root: Path) -> str:
    """The repository's owner and name, as in ``ada/fast-pytorch``. Raises LinksError where there is none."""
    return _address(root)[2]


def _address(root: Path) -> re.Match[str]:
    if not (found := ADDRESS.search((root / "pyproject.toml").read_text(encoding="utf-8"))):
        raise LinksError('pyproject.toml lacks a line `Repository = "https://github.com/owner/name"`')
    return found


def addresses(repo: str) -> list[str]:
    """The ways to write down where a repository is, and where it runs."""
    owner, name = repo.split("/")
    return [
        f"github.com/{repo}",
        f"github.com:{repo}",
        f"colab.research.google.com/github/{repo}",
        f"mybinder.org/v2/gh/{repo}",
        f"codespaces.new/{repo}",
        f"https%3A%2F%2Fgithub.com%2F{owner}%2F{name}",  # nbgitpuller's
        f"lab%2Ftree%2F{name}",
        f"{owner}.github.io/{name}",
    ]


def move(root: Path, repo: str) -> list[Path]:
    """Write ``repo`` (``owner/name``) into every file that has the repository's address; gives these files.

    Notebooks keep their outputs. Raises LinksError or GitError, and changes nothing, where ``repo`` is no
    such name, a file has changes that are not committed, or a notebook cannot be read.
    """
    if not REPOSITORY.fullmatch(repo):
        raise LinksError(
            f"{repo or 'nothing'!r} is not a repository's owner and name; write them as in "
            "make links REPO=ada/fast-pytorch"
        )
    replacement = dict(zip(addresses(repository(root)), addresses(repo), strict=True))
    # Not the beginning of a longer name; `.git` and the full stop of a sentence may follow.
    old = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, replacement))})(?![\w-]|\.(?!git\b)\w)")
    texts = tracked_texts(root)
    moved = {path: old.sub(lambda found: replacement[found[1]], text) for path, text in texts.items()}
    notebooks = [path for path in texts if path.suffix == ".ipynb"]
    changes = [path for path in texts if moved[path] != texts[path]]
    if dirty := git(
        root, "diff", "--name-only", "HEAD", "--", *map(str, {*notebooks, *changes})
    ).splitlines():
        more = f" and {len(dirty) - 3} more" if len(dirty) > 3 else ""
        raise LinksError(f"commit or undo your changes first, in {', '.join(dirty[:3])}{more}")
    for path in notebooks:
        _refuse_unreadable(path.relative_to(root), texts[path])
    _write({path: moved[path] for path in changes}, texts)
    return changes


def tracked_texts(root: Path) -> dict[Path, str]:
    """The text files that git knows, and what is in them."""
    texts = {}
    for name in git(root, "ls-files", "-z").split("\0"):
        path = root / name
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            if b"\0" not in content:
                try:
                    texts[path] = content.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise LinksError(f"{name} is not a text in UTF-8: {error}") from None
    return texts


def _refuse_unreadable(name: Path, text: str) -> None:
    try:
        nbformat.validate(nbformat.reads(text, as_version=4))
    except Exception as error:  # nbformat raises whatever it stumbles over
        raise LinksError(f"{name} is not a notebook ({type(error).__name__}); run `make notebooks`") from None


def _write(after: dict[Path, str], before: dict[Path, str]) -> None:
    """Write all files, or none."""
    touched = []
    try:
        for path, text in after.items():
            touched.append(path)
            path.write_bytes(text.encode())
    except OSError as error:
        for path in touched[:-1]:
            path.write_bytes(before[path].encode())
        raise LinksError(f"{error}; nothing was changed") from None
