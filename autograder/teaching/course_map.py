"""The map of the course on its front page: what each chapter takes, and how far the reader is."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..judging import progress
from ..measuring import store
from ..show import show_markdown, table_markdown
from .guess import tally

SPACE = "\N{NO-BREAK SPACE}"
HEADER = ("chapter", "reading", "exercises", "you passed")


@dataclass(frozen=True)
class Chapter:
    """A chapter as the front page shows it."""

    name: str
    title: str
    minutes: int
    exercise_minutes: int
    exercises: str  # their address
    tests: Mapping[str, Mapping[str, str]]  # exercise → its test cells


def course_map(subjects: Mapping[str, str]) -> None:
    """Show the map. ``subjects`` are the chapters in reading order, with what each is about.

    Everything else is read from the chapters and exercises themselves; the page is in the chapters' folder.
    Raises FileNotFoundError for a chapter that is not there, ValueError where its text lacks the time.
    """
    kept, counts, rows = progress.passed(), [], []
    chapters = [chapter(name, Path.cwd()) for name in subjects]
    for found in chapters:
        name, total = found.name, len(found.tests)
        count = sum(kept.get(name, {}).keys() >= tests.keys() for tests in found.tests.values())
        counts.append(count)
        told = f"{'●' * count}{'○' * (total - count)} {count} of {total}".replace(" ", SPACE)
        title = f"[{found.title}]({name}.ipynb): {subjects[name]}"
        rows.append((title, f"{found.minutes}{SPACE}min", _tasks(found), told))
    start, below = _summary(chapters, counts)
    show_markdown("\n\n".join(filter(None, [start, table_markdown(HEADER, rows), below, tally()])))


def chapter(name: str, course: Path) -> Chapter:
    """Read what the front page says of one chapter, from its notebook and its exercises."""
    cells = json.loads((course / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    title = re.search(r"^# (.+?)(?:: .+)?$", text, re.MULTILINE)
    minutes = re.search(r"\*\*Time:\*\* (\d+) minutes", text)
    if not (title and minutes):
        raise ValueError(f"{name} must begin with a title and **Time:** … minutes")
    address = f"../exercises/{name}/{name}.ipynb"
    notebook = course / address
    exercises = notebook.read_text(encoding="utf-8") if notebook.is_file() else ""
    time = sum(map(int, re.findall(r"\*\w+, (\d+) minutes\.\*", exercises)))
    return Chapter(name, title[1], int(minutes[1]), time, address, progress.exercises_in(notebook))


def _tasks(found: Chapter) -> str:
    """The link to the exercises; on a JupyterHub they are not there before they are fetched."""
    if not found.tests:
        return "not fetched yet"
    return f"[{len(found.tests)}{SPACE}exercises]({found.exercises}), {found.exercise_minutes}{SPACE}min"


def _summary(chapters: Sequence[Chapter], counts: Sequence[int]) -> tuple[str, str]:
    """Where to begin or to go on, and where it is kept how far the reader is."""
    total = sum(len(found.tests) for found in chapters)
    if not any(counts):
        return (
            f"**Start here:** [{chapters[0].title}]({chapters[0].name}.ipynb)",
            f"{total} exercises, none passed yet. What you pass is kept in a small file on this machine, and "
            "sent nowhere.",
        )
    unfinished = (one for one, count in zip(chapters, counts, strict=True) if count < len(one.tests))
    first = next(unfinished, None)
    ahead = f"Continue: [exercises {first.title}]({first.exercises})" if first else "That is all of them."
    path, home = store.path_of(progress.NAME), Path.home()
    there = f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else path
    return (
        f"**{sum(counts)} of {total} exercises passed.** {ahead}",
        f"This is kept in `{there}` on this machine, and sent nowhere. Delete the file to start again.",
    )
