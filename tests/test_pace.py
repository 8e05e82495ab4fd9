"""Chapters that breathe: how long they are, what their heads say, and who makes the guesses."""

import math
import re
from dataclasses import dataclass

import jupytext
from repository import CHAPTERS, ROOT

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
    start, end = further.start(), summary.start()
    return Part(text[:start] + text[end:]), Part(text[start:end])


def test_chapters_are_short_enough_and_their_heads_say_the_time_and_what_the_reader_must_know() -> None:
    wrong = []
    for chapter in CHAPTERS:
        main, further = parts(chapter)
        head = main.text.split("# %%\n")[0]
        said = {
            "five widely read articles": "five widely read articles" in head,
            "chapter 00": chapter == "00_measuring" or "chapter 00" in head or "00_measuring" in head,
            f"**Time:** {main.minutes} minutes": f"**Time:** {main.minutes} minutes" in head,
        }
        if further:
            said["that Further can be skipped"] = "skip" in "\n".join(further.text.split("\n")[:12])
            said[f"{further.minutes} more for"] = f"{further.minutes} more for" in head
        wrong += [f"{chapter} must say: {words}" for words, it_does in said.items() if not it_does]
        if main.lines > MOST_LINES or main.comparisons > MOST_COMPARISONS:
            wrong.append(f"{chapter} has {main.lines} lines, {main.comparisons} comparisons")
    assert wrong == []


def test_no_guess_is_made_for_the_reader() -> None:
    for chapter in CHAPTERS:
        text = (ROOT / "course" / f"{chapter}.py").read_text(encoding="utf-8")
        assert set(re.findall(r"(?m)^guess = (.*)$", text)) == {"..."}, chapter
