"""Every "Why" of the chapters and what shows that it is so, and how it is folded until readers have guessed.

A Why is a paragraph that begins with "**Why". Its kind is read from what stands beside it: a cause that the
nearest comparison of its section, or the next cell, takes away (``because=``) or predicts (``"prices"``); a
link in the paragraph; an assertion in the cell before or after it.

The text after a cell that takes a guess, and after what further cells show, is folded up to the next heading:
it opens by a click, without any script. What leads on stays in view: paragraphs at its end that ask or end
with a colon, and the question before the next guess.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import dropwhile
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from ..roles import calls_of, python_in
from ..show import table_markdown
from ..teaching.scripts import CAUSES_MIME, PRICES
from .sources import chapter_sources

_WHY = re.compile(r"^\*\*Why[^*]*\*\*,?\s*")
_LINK = re.compile(r"\[([^]]*)\]\((https?:)?[^)]*\)")
_ASKED, _TAKES = re.compile(r"guess\w* = \.\.\."), re.compile(r"\bguess\b")
_LAST_SENTENCE = re.compile(r"(?s)(.*[.!)])\s+(\S.*[?:])")
_MARK = '<details class="after-the-guess"><summary>'
_FOLDED = re.compile(rf"(?s){re.escape(_MARK)}[^\n]*\n\n(.*?)\n\n</details>")


class Why(NamedTuple):
    """A paragraph that says why."""

    sentence: str
    kind: str  # empty where nothing shows that it is so
    shares: str = ""  # of the difference that went with each cause, or were predicted


def whys(cells: Sequence[NotebookNode]) -> Iterator[Why]:
    """All of a notebook, built or to be built, in reading order."""
    compared = before = None
    for cell, after in zip(cells, [*cells[1:], None], strict=True):
        if cell.cell_type == "code":
            before, compared = cell, cell if calls_of(python_in(cell.source)[0], "compare") else compared
        paragraphs = cell.source.split("\n\n") if cell.cell_type == "markdown" else []
        for place, text in enumerate(paragraphs):
            if text.startswith("#"):
                compared = before = None
            elif text.startswith(("Why", "**Why")):
                parted = any(one.startswith("#") for one in paragraphs[place:])
                yield _why(text, [compared, before, None if parted else after])


def _why(text: str, beside: Sequence[NotebookNode | None]) -> Why:
    said = _LINK.sub(r"\1", _WHY.sub("", text)).replace("*", "")
    sentence = shorten(re.split(r"(?<=[.?!])\s", said)[0], 200, placeholder=" …")
    cells = [cell for cell in beside if cell is not None and cell.cell_type == "code"]
    codes = [python_in(cell.source)[0] for cell in cells]
    for cell, code in zip(cells, codes, strict=True):
        words = [word for call in calls_of(code, "compare") for word in call.keywords]
        if given := [word.value for word in words if word.arg == "because"]:
            causes = [one for value in given for one in getattr(value, "elts", [value])]
            priced = all(getattr(one, "value", None) == PRICES for one in causes)
            return Why(sentence, "predicted" if priced else "taken away", _shares(cell))
    asserts = any(isinstance(node, ast.Assert) for code in codes[-2:] for node in ast.walk(code))
    linked = any(found[2] for found in _LINK.finditer(text))
    return Why(sentence, "documented" if linked else "shown" if asserts else "")


def _shares(cell: NotebookNode) -> str:
    told = [output.get("data", {}).get(CAUSES_MIME, []) for output in cell.get("outputs", ())]
    shares = ((one["cause"], one["share"]) for causes in told for one in causes)
    return "; ".join(f"{cause}: {'no difference' if of is None else f'{of:.0%}'}" for cause, of in shares)


def page(root: Path) -> str:
    """The page that lists all of them, as Markdown, as the built notebooks have them."""
    rows: list[tuple[str, ...]] = []
    for source in chapter_sources(root):
        if (notebook := source.with_suffix(".ipynb")).is_file():
            link = f"[{source.stem[:2]}](../course/{notebook.name})"
            rows += [(link, *why) for why in whys(nbformat.read(notebook, as_version=4).cells)]
    kinds = ", ".join(f"{kind} {number}" for kind, number in Counter(row[2] for row in rows).most_common())
    table = table_markdown(("chapter", "why", "kind", "share explained"), rows)
    form = Path(__file__).with_name("whys_page.txt").read_text("utf-8")
    return form.format(number=len(rows), kinds=kinds, table=table)


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
            return paragraphs[:place], paragraphs[place:]
        within ^= paragraph.count("```") % 2 == 1
    while end and (paragraphs[end - 1].endswith(("?", ":")) or (asks and end == len(paragraphs))):
        end -= 1
    answer, rest = paragraphs[:end], paragraphs[end:]
    if rest and not answer and (found := _LAST_SENTENCE.fullmatch(rest[0])):
        answer, rest[0] = [found[1]], found[2]
    return answer, rest
