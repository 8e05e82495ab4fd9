"""Chapters that breathe: how long they are, what their heads say, and who makes the guesses."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import jupytext
import pytest

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = sorted(path.stem for path in (ROOT / "course").glob("[0-9]*.py"))
MOST_LINES, MOST_COMPARISONS = 900, 12
FURTHER = re.compile(r"(?m)^# ## Further\b")
SUMMARY = re.compile(r"(?m)^# ## Summary\b")
# Prose is read at 200 words a minute, code at 20 lines; a guess with its result takes a minute.
WORDS, LINES, GUESSES = 200, 20, 1


@dataclass(frozen=True)
class Part:
    """A stretch of a chapter's percent script."""

    text: str

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def comparisons(self) -> int:
        return len(re.findall(r"(?<![\w.])compare\(", re.sub(r"(?m)^#.*$", "", self.text)))

    @property
    def minutes(self) -> int:
        """To read it and to run it, rounded up to five."""
        cells = jupytext.reads(self.text, fmt="py:percent").cells
        words = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
        code = [line for cell in cells if cell.cell_type == "code" for line in cell.source.split("\n")]
        lines = sum(bool(line.strip()) for line in code)
        guesses = len(re.findall(r"(?m)^guess = ", self.text))
        return 5 * math.ceil((words / WORDS + lines / LINES + guesses * GUESSES) / 5)


def parts(chapter: str) -> tuple[Part, Part | None]:
    """The main part of a chapter, and the part that may be skipped, which stands before the summary."""
    text = (ROOT / "course" / f"{chapter}.py").read_text(encoding="utf-8")
    further, summary = FURTHER.search(text), SUMMARY.search(text)
    if not further:
        return Part(text), None
    assert summary, "what may be skipped ends at a part '## Summary'"
    return Part(text[: further.start()] + text[summary.start() :]), Part(
        text[further.start() : summary.start()]
    )


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_is_short_enough(chapter: str) -> None:
    main, further = parts(chapter)
    assert main.lines <= MOST_LINES
    assert main.comparisons <= MOST_COMPARISONS
    if further:
        head = "\n".join(further.text.split("\n")[:12])
        assert "skip" in head, "the part Further says at its beginning that it can be skipped"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_its_head_says_the_time_and_what_the_reader_must_know(chapter: str) -> None:
    main, further = parts(chapter)
    head = main.text.split("# %%\n")[0]
    assert f"**Time:** {main.minutes} minutes" in head
    if further:
        assert f"{further.minutes} more for" in head
    assert "five widely read articles" in head
    assert chapter == "00_measuring" or "chapter 00" in head or "00_measuring" in head


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_guess_is_made_for_the_reader(chapter: str) -> None:
    text = (ROOT / "course" / f"{chapter}.py").read_text(encoding="utf-8")
    guesses = re.findall(r"(?m)^guess = (.*)$", text)
    assert guesses
    assert set(guesses) == {"..."}
