"""The score of every claim: what the chapters' cells found out, and the verdicts that follow.

Nothing here is typed by hand. The chapters' scripts say which comparison tests which claim
(``compare(…, claim=…)``), their notebooks hold what the other cells found out, and the figures are those of
``make record``.
"""

import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import convert
from msgspec.structs import replace

from ..measuring.units import times
from ..show import in_notebook, picture, show_markdown, table_markdown
from . import recordings
from .claims import CLAIMS, SOURCES, ScoreError
from .evidence import MIME, Code, Evidence, decides, holds, judge, span
from .guess import tally
from .published import collection, decide, in_words, published_on
from .remember import things
from .scripts import Cell, comparisons

COURSE = Path(__file__).resolve().parents[2] / "course"
MAKERS = {"articles": "article", "documentation": "documentation"}


def findings(
    course: Path = COURSE, timings: Path = recordings.TIMINGS, here: Path | None = None
) -> list[Evidence]:
    """What the cells found out, by chapter. Raises ScoreError for a comparison that can decide nothing.

    Each comparison is there once for every device that it was recorded on and that can decide its claim, or
    once without a figure. ``here`` is the folder with this machine's own figures.
    """
    recorded, own = recordings.recordings(timings), recordings.recordings(here) if here else {}
    found: list[Evidence] = []
    for cell in comparisons(course):
        if cell.claim:
            asked = _asked(cell, cell.claim)
            measured = [*_measured(cell, asked, recorded), *_measured(cell, replace(asked, here=True), own)]
            found += measured or [asked]
    for notebook in sorted(course.glob("*.ipynb")):
        found += _told(notebook)
    return sorted(found, key=lambda one: one.chapter)


def _asked(cell: Cell, claim: str) -> Evidence:
    """What a comparison is to find out. Raises ScoreError where it can decide nothing."""
    where = f"{cell.chapter}.py, line {cell.line}"
    if "…" in (cell.title, claim, cell.only):
        raise ScoreError(f"{where}: a title or a claim is no plain text")
    try:
        asked = Evidence(claim, cell.title, "timing", chapter=cell.chapter)
    except ScoreError as error:
        raise ScoreError(f"{where}: {error}") from None
    if cell.only and not decides(claim, cell.only):
        needed = CLAIMS[claim].device
        raise ScoreError(f"{where}: {claim} is about {needed}, and {cell.title!r} runs on {cell.only} only.")
    return asked


def _measured(
    cell: Cell, asked: Evidence, known: Mapping[str, Sequence[recordings.Timing]]
) -> Iterator[Evidence]:
    for title in filter(cell.is_called, known):
        for timing in known[title]:
            name, kind, ratio = timing.facts["name"], timing.facts["kind"], timing.gain
            if decides(asked.claim, kind, rocm="rocm" in timing.facts):
                figure = {"device": name, "on": kind, "ratio": ratio, "processes": len(timing.processes)}
                yield replace(asked, what=title, holds=holds(asked.claim, ratio), **figure)


def _told(notebook: Path) -> Iterator[Evidence]:
    """What the cells of an executed notebook found out without a stopwatch."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", ()):
            if told := output.get("data", {}).get(MIME):
                yield convert(told | {"chapter": notebook.stem}, Evidence)


def ten_things() -> None:
    """Show what to remember of all of it: a chart, and a sentence each."""
    found = findings()
    chosen = things(found)
    if in_notebook():
        from .chart import draw_scores

        rows = {f"{number}. {thing.short}": thing.behind(found) for number, thing in enumerate(chosen, 1)}
        picture(draw_scores(rows), "Chart: the figures of the sentences below, by their numbers")
    show_markdown("\n".join(f"{number}. {thing.sentence(found)}" for number, thing in enumerate(chosen, 1)))


def scoreboard(part: str | None = None) -> None:
    """Show the score of all claims with a chart; or of one part ("A" to "F") with every finding."""
    found = findings(here=recordings.kept_here())
    if part is None:
        show_markdown(f"{summary(found)} {tally()}".rstrip())
        if in_notebook():
            from .chart import draw_scores

            timed = _timed(found)
            ranges = "; ".join(f"{label} {span(row)}" for label, row in timed.items())
            picture(draw_scores(timed), f"Chart: times faster with the advice, by claim. {ranges}")
        return
    source = SOURCES[part]
    title = f"[{source.title}]({source.link})" if source.link else source.title
    claims = [claim for claim in CLAIMS if claim.startswith(part)]
    lines = [f"The {source.kind}: {title}", "", table(found, claims), ""]
    lines += ["<details><summary>Every finding</summary>", ""]
    for claim in claims:
        sentences = [f"- {_sentence(one)}" for one in found if one.claim == claim]
        lines += [f"**{claim}** {CLAIMS[claim].says}", "", *sentences, ""]
    lines += ["</details>", "", "<details><summary>Every published figure</summary>", ""]
    lines += [in_words(name) for name, one in collection()[1].items() if set(one.claim.split()) & set(claims)]
    show_markdown("\n".join([*lines, "", "</details>"]))


def table(found: Sequence[Evidence], claims: Sequence[str]) -> str:
    """Claims of one kind of source: what it says, both verdicts with the rule, what this machine found where
    it has run the chapters, and what others published, as a Markdown table.
    """
    header, rows = ["claim", f"what the {SOURCES[claims[0][0]].kind} says", "what we found"], []
    for claim in claims:
        says, words, link = CLAIMS[claim].says, CLAIMS[claim].words, CLAIMS[claim].link
        quoted = "" if not words else f" [“{words}”]({link})" if link else f" “{words}”"
        verdict = judge(claim, found)
        told = f"**{verdict.word}** {verdict.rule}".rstrip()
        if verdict.code:
            runs = "" if verdict.code is Code.RUNS else "is "
            told += f" The {SOURCES[claim[0]].kind}'s own code {runs}{verdict.code}."
        chapters = dict.fromkeys(one.chapter for one in found if one.claim == claim)
        links = ", ".join(f"[{chapter[:2]}]({chapter}.ipynb)" for chapter in chapters)
        rows.append([claim, f"{says}{quoted}", f"{told} ({links})"])
    if any(one.here for one in found):
        header.append("this machine")
        for row in rows:
            row.append(span(one for one in found if one.claim == row[0] and one.here))
    if any(map(published_on, claims)):
        header.append("what others published")
        for row in rows:
            row.append("**{}** {}".format(*decide(row[0])) if published_on(row[0]) else "")
    return table_markdown(header, rows)


def _sentence(one: Evidence) -> str:
    where, word = f"[{one.chapter[:2]}]({one.chapter}.ipynb)", f"**{one.word}**"
    side = f" ({one.side_in_words})" if one.side else ""
    if one.kind == "documentation":
        return f"{where} {one.what} [{word}]({one.link})"
    if one.ratio and one.device:
        device = "this machine" if one.here else one.device.replace("(R)", "").replace("Processor", "")
        return f"{where} {one.what}{side}: {times(one.ratio.median)} on {' '.join(device.split())}, {word}"
    figure = f" ({times(one.ratio.median)})" if one.ratio else ""
    colon = "" if one.what.endswith(".") else ":"
    return f"{where} {one.what}{side}{colon} {word}{figure}"


def _timed(found: Sequence[Evidence]) -> dict[str, list[Evidence]]:
    """Claims that were timed, by a label, with what each comparison found."""
    timed = {
        f"{claim}  {textwrap.shorten(CLAIMS[claim].says, 44, placeholder='…')}": [
            one for one in found if one.claim == claim and one.ratio and one.device
        ]
        for claim in CLAIMS
    }
    return {label: row for label, row in timed.items() if row}


def summary(found: Sequence[Evidence]) -> str:
    """How many claims have which verdict, and what the verdicts rest on."""
    verdicts = {claim: judge(claim, found) for claim in CLAIMS}
    kinds = _counted(kind for verdict in verdicts.values() for kind in verdict.rests_on)
    lacking = not any(one.on == "cuda" and not one.here for one in found)
    said = ["No GPU was measured yet, so what is about GPUs is not decided."] if lacking else []
    for makers, kind in MAKERS.items():
        claims = [claim for claim in CLAIMS if SOURCES[claim[0]].kind == kind]
        words = _counted(verdicts[claim].word for claim in claims)
        said.append(f"{len(claims)} claims of the {makers}: {words}.")
    return " ".join([*said, f"They rest on {kinds} (some on more than one)."])


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{word}: {number}" for word, number in Counter(words).most_common())
