"""What many tests look at: the repository's own notebooks and scripts, each read once."""

import json
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from programs import git

from autograder.authoring import builder

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Scripts; those of the numbered chapters begin with a digit.
COURSE = builder.chapter_sources(ROOT)
SOLUTIONS = builder.solution_sources(ROOT)
CHAPTERS = [path.stem for path in COURSE if path.stem[0].isdigit()]
EXERCISES = [ROOT / "exercises" / path.stem / f"{path.stem}.ipynb" for path in SOLUTIONS]


@cache
def notebook(path: Path) -> nbformat.NotebookNode:
    """A notebook as it is on the disk; nobody may change it. For a script, the notebook beside it."""
    # Without nbformat's validation, which takes longer than all the rest.
    return nbformat.v4.reads(path.with_suffix(".ipynb").read_text(encoding="utf-8"))


@cache
def built(source: Path) -> nbformat.NotebookNode:
    """The notebook that a script says; nobody may change it."""
    return builder.build(source)


def output_texts(cell: nbformat.NotebookNode) -> list[str]:
    """The texts in a cell's outputs: streams and text-like displays, without pictures."""
    return ["".join(builder.PICTURE.split(holder[key])[::2]) for holder, key in builder.texts(cell)]


def published(name: str) -> dict:
    """The figures of ``data/NAME.json``."""
    return json.loads((ROOT / "data" / f"{name}.json").read_text(encoding="utf-8"))


def with_what_they_need(names: Iterable[str]) -> set[str]:
    """The distributions of these requirements and all that they require here."""
    found: set[tuple[str, ...]] = set()
    queue = list(map(Requirement, names))
    while queue:
        needed = queue.pop()
        extras = ("", *sorted(needed.extras))
        if (one := (canonicalize_name(needed.name), *extras)) not in found:
            found.add(one)
            with suppress(PackageNotFoundError):  # of another system, or an older Python
                asked = lambda marker, of=extras: any(marker.evaluate({"extra": extra}) for extra in of)
                more = map(Requirement, requires(needed.name) or ())
                queue += [each for each in more if not each.marker or asked(each.marker)]
    return {name for name, *_ in found}


def all_files() -> list[str]:
    """The names of the files that are in git, or could be."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    names = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return [name for name in names if (ROOT / name).is_file()]


def copy_files(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
