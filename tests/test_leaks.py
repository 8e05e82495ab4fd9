"""Nothing that only instructors may see is found under exercises/."""

import html
import json
import re
import shutil
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import nbformat
import pytest
from repository import EXERCISES, ROOT, SOLUTIONS, built

MARKER = re.compile(r"\b(BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')  # in JSON; a notebook has each line as one
SHORTEST = 12  # shorter lines (`return x`, `else:`) give nothing away


def plain(line: str) -> str:
    """A line as it is compared: no indentation, no HTML, single spaces."""
    return " ".join(html.unescape(line).split())


def tells(line: str) -> bool:
    """Whether somebody could make something of it."""
    return len(line.replace(" ", "")) >= SHORTEST


@cache
def split(source: Path) -> tuple[list[str], list[str]]:
    """(secret, visible) lines of code of one solution's script."""
    secret, visible = [], []
    for cell in built(source).cells:
        if cell.cell_type != "code":
            continue
        lines = cell.source.splitlines()
        if cell.metadata.get("nbgrader", {}).get("solution") and not MARKER.search(cell.source):
            secret += lines  # nbgrader clears such a cell whole
            continue
        inside = False
        for line in lines:
            if found := MARKER.search(line):
                inside = found[1] == "BEGIN"
            else:
                (secret if inside else visible).append(line)
    return [plain(line) for line in secret], [plain(line) for line in visible]


def texts(folder: Path) -> Iterator[tuple[Path, str]]:
    """(file, line) for everything readable under a folder."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes().decode("utf-8", errors="replace")
            parts = map(json.loads, STRING.findall(content)) if path.suffix == ".ipynb" else [content]
            yield from ((path, plain(line)) for part in parts for line in part.splitlines())


def leaks(exercises: Path, sources: Iterable[Path]) -> list[str]:
    """What is found under `exercises` and should not be.

    A line that the given code shows as well (`array = array.copy()`) may occur as often as it does there.
    """
    found = [f"{path}: a script" for path in exercises.rglob("*.py")]
    lines = list(texts(exercises))
    found += [f"{path}: {line}" for path, line in lines if MARKER.search(line)]
    secret = {line for source in sources for line in split(source)[0] if tells(line)}
    visible = [line for source in sources for line in split(source)[1]]
    everything = "\n".join(text for _, text in lines)
    for line in sorted(line for line in secret if line in everything):
        places = [path for path, text in lines if line in text]
        if len(places) > sum(line in text for text in visible):
            found += [f"{path}: {line}" for path in places]
    return found


def test_nothing_leaks():
    sizes = {source.stem: [len(set(lines)) for lines in split(source)] for source in SOLUTIONS}
    assert {name: size for name, size in sizes.items() if min(size) < 2} == {}, "there is nothing to look for"
    assert all(path.is_file() for path in EXERCISES)
    assert leaks(ROOT / "exercises", SOLUTIONS) == []


# The search finds what is planted.

EXAMPLE = SOLUTIONS[1]


@pytest.fixture
def exercises(tmp_path: Path) -> Path:
    """A folder of exercises with one chapter's."""
    shutil.copytree(ROOT / "exercises" / EXAMPLE.stem, tmp_path / "exercises" / EXAMPLE.stem)
    return tmp_path / "exercises"


def a_secret(source: Path, source_marker: str) -> str:
    """A long line between a marker's BEGIN and END that the visible code does not have."""
    text = source.read_text(encoding="utf-8")
    visible = split(source)[1]
    for region in re.findall(rf"BEGIN {source_marker}\n(.*?)### END", text, re.DOTALL):
        for line in region.splitlines():
            if len(line.replace(" ", "")) > 30 and not any(plain(line) in shown for shown in visible):
                return line
    raise AssertionError(f"{source} has no {source_marker} line to plant")


@pytest.mark.parametrize("marker", ["SOLUTION", "HIDDEN TESTS"])
def test_a_planted_line_is_found(exercises, marker):
    line = a_secret(EXAMPLE, marker)
    path = exercises / EXAMPLE.stem / f"{EXAMPLE.stem}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    outputs = [nbformat.v4.new_output("stream", text=f"{line}\n")]
    for cell in (
        nbformat.v4.new_markdown_cell(f"<details>Try <code>{html.escape(line.strip())}</code></details>"),
        nbformat.v4.new_markdown_cell("", attachments={"a.txt": {"text/plain": line}}),
        nbformat.v4.new_code_cell(f"1\n        {line.strip()}  # to be removed"),
        nbformat.v4.new_code_cell("1", metadata={"note": line}),
        nbformat.v4.new_code_cell("1", outputs=outputs),
    ):
        nbformat.write(nbformat.from_dict({**notebook, "cells": [*notebook.cells, cell]}), path)
        assert leaks(exercises, [EXAMPLE]), cell


def test_a_script_a_marker_and_a_line_of_the_given_code_once_more_are_found(exercises):
    secret, visible = split(EXAMPLE)
    shared = next(line for line in secret if tells(line) and line in visible)
    for name, text in {"01_x.py": "x = 1\n", "notes.md": "### BEGIN SOLUTION\n", "notes.txt": shared}.items():
        assert not leaks(exercises, [EXAMPLE])
        (exercises / name).write_text(text)
        assert leaks(exercises, [EXAMPLE]), name
        (exercises / name).unlink()
