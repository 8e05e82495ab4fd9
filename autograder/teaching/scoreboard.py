"""The score of every claim: what the chapters' cells found out, and the verdicts that follow.

Nothing here is typed by hand. The chapters' scripts say which comparison tests which claim
(``compare(…, claim=…)``), their notebooks hold what the other cells found out, and the figures are those of
``make record``.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..measuring.units import times
from ..show import in_notebook, picture, show_markdown, table_markdown
from . import recordings
from .claims import CLAIMS, SOURCES, ScoreError
from .evidence import (
    MIME,
    RUNS,
    WORDS,
    Evidence,
    Score,
    decides,
    holds,
    judge,
    span,
)

COURSE = Path(__file__).resolve().parents[2] / "course"
HERE = "here"  # the device's name, for this machine's own figures


@dataclass(frozen=True)
class Cell:
    """A comparison in a chapter's script that tests a claim.

    ``title`` has "…" for what an f-string puts in.
    """

    claim: str
    chapter: str
    title: str
    when: str | None = None
    unless: str | None = None
    only: str | None = None


def cells(course: Path = COURSE) -> list[Cell]:
    """The comparisons that test a claim, in reading order.

    Raises ScoreError where one of them can decide nothing.
    """
    found = []
    for script in sorted(course.glob("*.py")):
        calls = [
            node
            for node in ast.walk(ast.parse(script.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "compare"
        ]
        for call in sorted(calls, key=lambda call: call.lineno):
            named = {keyword.arg: keyword.value for keyword in call.keywords}
            if "claim" not in named:
                continue
            try:
                words = {
                    name: text_of(named[name])
                    for name in ("claim", "when", "unless", "only")
                    if name in named
                }
                cell = Cell(chapter=script.stem, title=text_of(call.args[0]), **words)
            except ValueError:
                raise ScoreError(
                    f"{script.name}, line {call.lineno}: a title, a claim or a condition is no plain text"
                ) from None
            try:
                Evidence(cell.claim, cell.title, "timing", when=cell.when, unless=cell.unless)
                if cell.only and not decides(cell.claim, cell.only):
                    needed = CLAIMS[cell.claim].device
                    raise ScoreError(
                        f"{cell.claim} is about {needed}, and {cell.title!r} runs on {cell.only} only."
                    )
            except ScoreError as error:
                raise ScoreError(f"{script.name}, line {call.lineno}: {error}") from None
            found.append(cell)
    return found


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
) -> list[Evidence]:
    """What the cells found out, by chapter.

    Each comparison is there once for every device that it was recorded on and that can decide its claim, or
    once without a figure.
    """
    recorded, local = recordings.recordings(timings), recordings.recordings(here) if here else {}
    found: list[Evidence] = []
    for cell in cells(course):
        measured = [*_measured(cell, recorded), *_measured(cell, local, HERE)]
        found += measured or [_evidence(cell, cell.title)]
    for notebook in sorted(course.glob("*.ipynb")):
        found += _told(notebook)
    return sorted(found, key=lambda one: one.chapter)


def _evidence(cell: Cell, title: str) -> Evidence:
    return Evidence(cell.claim, title, "timing", when=cell.when, unless=cell.unless, chapter=cell.chapter)


def _measured(
    cell: Cell, found: Mapping[str, Sequence[recordings.Recording]], name: str | None = None
) -> Iterator[Evidence]:
    pattern = ".*".join(map(re.escape, cell.title.split("…")))
    for title in filter(re.compile(pattern).fullmatch, found):
        for recording in found[title]:
            if not decides(cell.claim, recording.device["kind"], rocm="rocm" in recording.device):
                continue
            first, *_, last = recording.seconds
            ratio = recording.ratio(first, last)
            yield replace(
                _evidence(cell, title),
                holds=holds(cell.claim, ratio),
                device=name or recording.device["name"],
                on=recording.device["kind"],
                ratio=ratio,
            )


def _told(notebook: Path) -> Iterator[Evidence]:
    """What the cells of an executed notebook found out without a stopwatch."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", ()):
            if told := output.get("data", {}).get(MIME):
                yield Evidence.from_dict(told | {"chapter": notebook.stem})


def verdict_of(claim: str, found: Sequence[Evidence]) -> Score:
    """The verdicts on a claim, from what was recorded. Raises ScoreError where its cells disagree."""
    return judge(claim, [one for one in found if one.device != HERE])


def table(found: Sequence[Evidence], claims: Sequence[str]) -> str:
    """Claims of one kind of source: what it says, both verdicts with the rule, and what this machine found
    where it has run the chapters, as a Markdown table.
    """
    header, rows = ["claim", f"what the {SOURCES[claims[0][0]].kind} says", "what we found"], []
    here = any(one.device == HERE for one in found)
    for claim in claims:
        mine, verdict = [one for one in found if one.claim == claim], verdict_of(claim, found)
        told = f"{_both(claim, verdict)} ({_links(mine, '')})"
        row = [claim, f"{CLAIMS[claim].says}{_quotation(claim)}", told]
        ratios = [one.ratio.median for one in mine if one.device == HERE and one.ratio]
        rows.append((*row, span(ratios)) if here else tuple(row))
    return table_markdown((*header, "this machine") if here else tuple(header), rows)


def _both(claim: str, verdict: Score) -> str:
    """The two verdicts of a row."""
    code = {RUNS: "runs", "": ""}.get(verdict.code, f"is {verdict.code}")
    end = f" The {SOURCES[claim[0]].kind}'s own code {code}." if code else ""
    return f"**{verdict.word}** {verdict.rule}".rstrip() + end


def _quotation(claim: str) -> str:
    words, link = CLAIMS[claim].words, CLAIMS[claim].link
    return "" if not words else f" [“{words}”]({link})" if link else f" “{words}”"


def _links(mine: Sequence[Evidence], folder: str) -> str:
    chapters = dict.fromkeys(one.chapter for one in mine)
    return ", ".join(f"[{chapter[:2]}]({folder}{chapter}.ipynb)" for chapter in chapters)


def _devices(found: Sequence[Evidence]) -> list[str]:
    names = dict.fromkeys(one.device for one in found if one.device)
    return sorted(names, key=lambda name: name == HERE)


def _short(device: str) -> str:
    return " ".join(device.replace("(R)", "").replace("Processor", "").split())


def scoreboard(part: str | None = None) -> None:
    """Show the score of all claims with a chart; or of one part ("A" to "F") with every finding."""
    found = findings(here=recordings.kept_here())
    if part is None:
        show_markdown(summary(found))
        if in_notebook():
            from .chart import draw_scores

            picture(draw_scores(_dots(found), _devices(found)), _alternative(found))
        return
    source = SOURCES[part]
    title = f"[{source.title}]({source.link})" if source.link else source.title
    claims = [claim for claim in CLAIMS if claim.startswith(part)]
    details = []
    for claim in claims:
        lines = [f"- {_sentence(one)}" for one in found if one.claim == claim]
        details += [f"**{claim}** {CLAIMS[claim].says}", "", *lines, ""]
    folded = ["<details><summary>Every finding</summary>", "", *details, "</details>"]
    show_markdown("\n".join([f"The {source.kind}: {title}", "", table(found, claims), "", *folded]))


def summary(found: Sequence[Evidence]) -> str:
    """How many claims have which verdict, and what the verdicts rest on."""
    verdicts = {claim: verdict_of(claim, found) for claim in CLAIMS}
    kinds = _counted(kind for verdict in verdicts.values() for kind in verdict.rests_on)
    lacking = not any(one.on == "cuda" and one.device != HERE for one in found)
    said = ["No GPU was measured yet, so what is about GPUs is not decided."] if lacking else []
    for kind, claims in _by_kind().items():
        words = _counted(verdicts[claim].word for claim in claims)
        said.append(f"{len(claims)} claims of the {kind}: {words}.")
    return " ".join([*said, f"They rest on {kinds} (some on more than one)."])


def _by_kind() -> dict[str, list[str]]:
    """Claims by who makes them: "articles" and "documentation"."""
    named = {"article": "articles", "documentation": "documentation"}
    found: dict[str, list[str]] = {}
    for claim in CLAIMS:
        found.setdefault(named[SOURCES[claim[0]].kind], []).append(claim)
    return found


def _counted(words: Iterable[str]) -> str:
    counts = Counter(words).most_common()
    return ", ".join(f"{word}: {number}" for word, number in counts)


def _dots(found: Sequence[Evidence]) -> dict[str, list[tuple[str, float]]]:
    """Label of a claim → device and ratio of each comparison, for claims that have any."""
    dots: dict[str, list[tuple[str, float]]] = {}
    for claim in CLAIMS:
        for one in found:
            if one.claim == claim and one.ratio and one.device:
                label = f"{claim}  {textwrap.shorten(CLAIMS[claim].says, 44, placeholder='…')}"
                dots.setdefault(label, []).append((one.device, one.ratio.median))
    return dots


def _alternative(found: Sequence[Evidence]) -> str:
    ranges = {label: span([ratio for _, ratio in dots]) for label, dots in _dots(found).items()}
    return "Chart: times faster with the advice, by claim. " + "; ".join(
        f"{c} {r}" for c, r in ranges.items()
    )


def _sentence(one: Evidence) -> str:
    where = f"[{one.chapter[:2]}]({one.chapter}.ipynb)"
    side = f" (when {one.when})" if one.when else f" (not when {one.unless})" if one.unless else ""
    word = f"**{one.word}**"
    if one.kind == "documentation":
        return f"{where} {one.what} [{word}]({one.link})"
    if one.ratio and one.device:
        device = "this machine" if one.device == HERE else _short(one.device)
        return f"{where} {one.what}{side}: {times(one.ratio.median)} on {device}, {word}"
    figure = f" ({times(one.ratio.median)})" if one.ratio else ""
    colon = "" if one.what.endswith(".") else ":"
    return f"{where} {one.what}{side}{colon} {word}{figure}"


BEGIN, END = "<!-- claims: built by make notebooks -->", "<!-- end of claims -->"


def with_scores(readme: str, found: Sequence[Evidence]) -> str:
    """The README with the claims between its two marks, grouped by verdict. Raises ScoreError where they are
    missing.
    """
    before, mark, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise ScoreError(f"the README lacks {BEGIN!r} or {END!r}.")
    parts = [summary(found), "The figures are on [their page](course/claims.ipynb).", ""]
    for kind, claims in _by_kind().items():
        parts += [f"### From the {kind}", ""]
        groups: dict[str, list[tuple[str, ...]]] = {}
        for claim in claims:
            mine, verdict = [one for one in found if one.claim == claim], verdict_of(claim, found)
            told = verdict.code not in ("", RUNS)
            code = f"{verdict.rule} Its code: {verdict.code}." if told else verdict.rule
            row = (claim, CLAIMS[claim].says, code.strip(), _links(mine, "course/"))
            groups.setdefault(verdict.word, []).append(row)
        for word in sorted(groups, key=WORDS.index):
            rows = groups[word]
            parts += [f"**{word[0].upper()}{word[1:]}** ({len(rows)})", ""]
            parts += [table_markdown(("claim", "what it says", "rule", "chapter"), rows), ""]
    return "\n".join([f"{before}{BEGIN}", *parts, f"{END}{after}"])
