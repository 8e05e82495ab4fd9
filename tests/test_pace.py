"""Chapters that breathe: how long they are, what their heads say, and who makes the guesses."""

import math
import re

import jupytext
from repository import CHAPTERS, ROOT

MOST_LINES, MOST_COMPARISONS = 900, 12
# Prose is read at 200 words a minute, code at 20 lines; a guess with its result takes a minute.
WORDS, LINES = 200, 20


def minutes(text: str) -> int:
    """To read and to run a stretch of a chapter's percent script, rounded up to five."""
    cells = jupytext.reads(text, fmt="py:percent").cells
    words = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
    code = [line for cell in cells if cell.cell_type == "code" for line in cell.source.split("\n")]
    lines, guesses = sum(bool(line.strip()) for line in code), len(re.findall(r"(?m)^guess = ", text))
    return 5 * math.ceil((words / WORDS + lines / LINES + guesses) / 5)


def test_chapters_are_short_enough_and_their_heads_say_the_time_and_what_the_reader_must_know() -> None:
    wrong = []
    for chapter in CHAPTERS:
        text = (ROOT / "course" / f"{chapter}.py").read_text(encoding="utf-8")
        # What may be skipped stands before the summary.
        further = "".join(re.findall(r"(?ms)^# ## Further\b.*(?=^# ## Summary\b)", text))
        main = text.replace(further, "", 1)
        head = main.split("# %%\n")[0]
        said = {
            "five widely read articles": "five widely read articles" in head,
            "chapter 00": chapter == "00_measuring" or "chapter 00" in head or "00_measuring" in head,
            f"**Time:** {minutes(main)} minutes": f"**Time:** {minutes(main)} minutes" in head,
            "a summary after what may be skipped": "\n# ## Further" not in main,
        }
        if further:
            said["that Further can be skipped"] = "skip" in "\n".join(further.split("\n")[:12])
            said[f"{minutes(further)} more for"] = f"{minutes(further)} more for" in head
        wrong += [f"{chapter} must say: {words}" for words, it_does in said.items() if not it_does]
        comparisons = len(re.findall(r"(?<![\w.])compare\(", re.sub(r"(?m)^#.*$", "", main)))
        if main.count("\n") > MOST_LINES or comparisons > MOST_COMPARISONS:
            wrong.append(f"{chapter} has {main.count(chr(10))} lines, {comparisons} comparisons")
    assert wrong == []


def test_no_guess_is_made_for_the_reader() -> None:
    for chapter in CHAPTERS:
        text = (ROOT / "course" / f"{chapter}.py").read_text(encoding="utf-8")
        assert set(re.findall(r"(?m)^guess = (.*)$", text)) == {"..."}, chapter
