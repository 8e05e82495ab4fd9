"""Folds what answers a question until the reader has guessed: it opens by a click, without any script.

The text after a cell that takes a guess, and after what further cells show, is folded up to the next heading.
What leads on stays in view: paragraphs at its end that ask or end with a colon, and the next question.
"""

import re
from collections.abc import Sequence
from itertools import dropwhile

from nbformat import NotebookNode

_ASKED, _TAKES = re.compile(r"guess\w* = \.\.\."), re.compile(r"\bguess\b")
_LAST_SENTENCE = re.compile(r"(?s)(.*[.!)])\s+(\S.*[?:])")
_MARK = '<details class="after-the-guess"><summary>'
_FOLDED = re.compile(rf"(?s){re.escape(_MARK)}[^\n]*\n\n(.*?)\n\n</details>")


def fold_answers(cells: Sequence[NotebookNode]) -> None:
    """Fold the text after each guess, in place. What is folded already is folded as if it were not."""
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = _FOLDED.sub(r"\1", cell.source)
    for place, cell in enumerate(cells):
        if cell.cell_type == "code" and _TAKES.search(cell.source) and not _ASKED.match(cell.source):
            shows_more = lambda one: one.cell_type == "code" and not _TAKES.search(one.source)
            text, *more = [*dropwhile(shows_more, cells[place + 1 :]), cell]
            if text.cell_type == "markdown":
                asks = _ASKED.match(more[0].source) is not None
                answer, rest = _parted(text.source.split("\n\n"), asks)
                if answer:
                    word = "Why" if answer[0].startswith("**Why.**") else "What it says"
                    opened = f"{_MARK}{word}: guess first, then open</summary>"
                    text.source = "\n\n".join([opened, *answer, "</details>", *rest])


def _parted(paragraphs: list[str], asks: bool) -> tuple[list[str], list[str]]:
    """What is folded, and what stays in view; ``asks``: a guess follows."""
    end, within = len(paragraphs), False
    for place, paragraph in enumerate(paragraphs):
        if paragraph.startswith("#") and not within:
            end = place
            break
        within ^= paragraph.count("```") % 2 == 1
    if end < len(paragraphs):
        return paragraphs[:end], paragraphs[end:]
    while end and (paragraphs[end - 1].endswith(("?", ":")) or (asks and end == len(paragraphs))):
        end -= 1
    answer, rest = paragraphs[:end], paragraphs[end:]
    if rest and not answer and (found := _LAST_SENTENCE.fullmatch(rest[0])):
        answer, rest[0] = [found[1]], found[2]
    return answer, rest
