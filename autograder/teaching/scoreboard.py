"""The score of every claim: what the chapters state about it, and what was measured.

Nothing here is typed by hand. The chapters' scripts say which of their cells test a claim (``compare(…,
claim=…)`` and ``verdict(…)``); the figures are those of ``make record``, and of this machine's own runs.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..measuring.duel import Ratio
from ..measuring.units import times
from ..show import in_notebook, show_markdown, show_picture, table_markdown
from . import recordings
from .claims import CLAIMS, overall, word_for

COURSE = Path(__file__).resolve().parents[2] / "course"
UNKNOWN = "not measured yet"


@dataclass(frozen=True)
class Finding:
    """What one cell of a chapter says about a claim.

    ``subject`` is the title of a comparison or the reason of a stated verdict, ``word`` the verdict (None:
    not measured yet), ``device`` where it was measured ("here" on this machine) and ``ratio`` how much faster
    the advice was.
    """

    claim: str
    chapter: str
    subject: str
    word: str | None = None
    device: str | None = None
    ratio: Ratio | None = None


def cells(course: Path = COURSE) -> list[Finding]:
    """The cells that test a claim, in reading order; comparisons without a word.

    Raises ValueError where the title, the claim or the verdict is not plain text.
    """
    found = []
    for script in sorted(course.glob("*.py")):
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            named = {keyword.arg: keyword.value for keyword in node.keywords}
            if node.func.id == "compare" and "claim" in named:
                texts = [named["claim"], node.args[0]]
            elif node.func.id == "verdict":
                texts = [node.args[0], node.args[2], node.args[1]]
            else:
                continue
            try:
                claim, subject, *word = map(text_of, texts)
                finding = Finding(claim, script.stem, subject, word[0] if word else None)
                found.append((node.lineno, finding))
            except ValueError:
                raise ValueError(
                    f"{script.name}, line {node.lineno}: a title, claim or verdict is no plain text"
                ) from None
    return [finding for _, finding in sorted(found, key=lambda pair: (pair[1].chapter, pair[0]))]


def text_of(node: ast.expr) -> str:
    """The text that an expression is, with "…" for what an f-string puts in. Raises ValueError for others."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    text = ast.literal_eval(node)
    if not isinstance(text, str):
        raise ValueError(text)
    return text


def findings(
    course: Path = COURSE, timings: Path = recordings.TIMINGS, here: Path | None = None
) -> list[Finding]:
    """Stated verdicts, and each comparison once for every device that it was measured on, or once without."""
    recorded, local = recordings.recordings(timings), recordings.recordings(here) if here else {}
    found = []
    for cell in cells(course):
        if cell.word:
            found.append(cell)
            continue
        found += [*_measured(cell, recorded, None), *_measured(cell, local, "here")] or [cell]
    return found


def _measured(
    cell: Finding, recordings: Mapping[str, Sequence[recordings.Recording]], name: str | None
) -> Iterator[Finding]:
    pattern = ".*".join(map(re.escape, cell.subject.split("…")))
    for title in filter(re.compile(pattern).fullmatch, recordings):
        for recording in recordings[title]:
            first, *_, last = recording.seconds
            ratio = recording.ratio(first, last)
            device = name or recording.device["name"]
            yield replace(cell, subject=title, word=word_for(ratio), device=device, ratio=ratio)


def score(found: Sequence[Finding]) -> str:
    """One word for what was found about a claim on recorded devices."""
    words = [finding.word for finding in found if finding.word and finding.device != "here"]
    return overall(words) if words else UNKNOWN


def table(found: Sequence[Finding], claims: Sequence[str], folder: str = "", *, here: bool = True) -> str:
    """The claims as a Markdown table; ``folder`` stands before the chapters' files."""
    devices = _devices(found)
    if not here:
        devices = [device for device in devices if device != "here"]
    rows = []
    for claim in claims:
        mine = [finding for finding in found if finding.claim == claim]
        chapters = dict.fromkeys(finding.chapter for finding in mine)
        links = ", ".join(f"[{chapter[:2]}]({folder}{chapter}.ipynb)" for chapter in chapters)
        figures = [
            _range([f.ratio.median for f in mine if f.device == device and f.ratio]) for device in devices
        ]
        rows.append((claim, CLAIMS[claim], links, score(mine), *figures))
    names = ["this machine" if device == "here" else _short(device) for device in devices]
    return table_markdown(("claim", "what it says", "chapter", "verdict", *names), rows)


def _devices(found: Sequence[Finding]) -> list[str]:
    names = dict.fromkeys(finding.device for finding in found if finding.device)
    return sorted(names, key=lambda name: name == "here")


def _range(ratios: Sequence[float]) -> str:
    if not ratios:
        return ""
    low, high = times(min(ratios)), times(max(ratios))
    return low if low == high else f"{low} to {high}"


def _short(device: str) -> str:
    return " ".join(device.replace("(R)", "").replace("Processor", "").split())


def scoreboard(part: str | None = None) -> None:
    """Show the score of all claims with a chart; or of one part ("A" to "E") with every finding."""
    found = findings(here=recordings.kept_here())
    if part is None:
        show_markdown(_summary(found))
        if in_notebook():
            from .chart import draw_scores

            show_picture(draw_scores(_dots(found), _devices(found)), _alternative(found))
        return
    claims = [claim for claim in CLAIMS if claim.startswith(part)]
    details = []
    for claim in claims:
        lines = [f"- {_sentence(finding)}" for finding in found if finding.claim == claim]
        details += [f"**{claim}** {CLAIMS[claim]}", "", *lines, ""]
    folded = ["<details><summary>Every finding</summary>", "", *details, "</details>"]
    show_markdown("\n".join([table(found, claims), "", *folded]))


def _summary(found: Sequence[Finding]) -> str:
    scores = {claim: score([f for f in found if f.claim == claim]) for claim in CLAIMS}
    counts = {word: list(scores.values()).count(word) for word in dict.fromkeys(scores.values())}
    told = ", ".join(
        f"{word}: {number}" for word, number in sorted(counts.items(), key=lambda item: -item[1])
    )
    return f"{len(CLAIMS)} claims. {told}."


def _dots(found: Sequence[Finding]) -> dict[str, list[tuple[str, float]]]:
    """Label of a claim → device and ratio of each comparison, for claims that have any."""
    dots: dict[str, list[tuple[str, float]]] = {}
    for claim in CLAIMS:
        for finding in found:
            if finding.claim == claim and finding.ratio and finding.device:
                label = f"{claim}  {textwrap.shorten(CLAIMS[claim], 44, placeholder='…')}"
                dots.setdefault(label, []).append((finding.device, finding.ratio.median))
    return dots


def _alternative(found: Sequence[Finding]) -> str:
    ranges = {label: _range([ratio for _, ratio in dots]) for label, dots in _dots(found).items()}
    return "Chart: times faster with the advice, by claim. " + "; ".join(
        f"{c} {r}" for c, r in ranges.items()
    )


def _sentence(finding: Finding) -> str:
    where = f"[{finding.chapter[:2]}]({finding.chapter}.ipynb)"
    if finding.ratio and finding.device:
        device = "this machine" if finding.device == "here" else _short(finding.device)
        return f"{where} {finding.subject}: {times(finding.ratio.median)} on {device}, **{finding.word}**"
    colon = "" if finding.subject.endswith(".") else ":"
    return f"{where} {finding.subject}{colon} **{finding.word or UNKNOWN}**"


BEGIN, END = "<!-- claims: built by make notebooks -->", "<!-- end of claims -->"


def with_scores(readme: str, found: Sequence[Finding]) -> str:
    """The README with the table of claims between its two marks. Raises ValueError where they are missing."""
    before, mark, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise ValueError(f"the README lacks {BEGIN!r} or {END!r}.")
    board = table(found, list(CLAIMS), "course/", here=False)
    return f"{before}{BEGIN}\n{_summary(found)}\n\n{board}\n{END}{after}"
