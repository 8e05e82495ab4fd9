"""The score of every claim: what the chapters' cells found out, and the verdicts that follow.

Nothing here is typed by hand. The chapters' scripts say which comparison tests which claim
(``compare(…, claim=…)``), their notebooks hold what the other cells found out, and the figures are those of
``make record``.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import convert
from msgspec.structs import replace

from ..measuring.units import times
from ..show import show_markdown, table_markdown
from . import recordings
from .claims import CLAIMS, SOURCES, ScoreError
from .evidence import MIME, Advice, Code, Evidence, decides, holds, judge, span
from .guess import tally
from .published import collection, decide, in_words, published_on
from .remember import things
from .scripts import Cell, comparisons

PLURAL = {
    Advice.HOLDS: "hold",
    Advice.HOLDS_WHEN: "hold under a condition",
    Advice.DOES_NOT_PAY: "do not pay",
    Advice.WRONG: "are wrong",
    Advice.NEEDS_A_GPU: "wait for a GPU",
    Advice.UNKNOWN: "were not measured",
}
COURSE = Path(__file__).resolve().parents[2] / "course"


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
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        outputs = (output.get("data", {}) for cell in cells for output in cell.get("outputs", ()))
        told = (data[MIME] for data in outputs if data.get(MIME))
        found += [convert(one | {"chapter": notebook.stem}, Evidence) for one in told]
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


def ten_things() -> None:
    """Show what to remember of all of it, with how far from 1 the figures are."""
    found = findings()
    rows = [
        (str(number), thing.on.replace("cuda", "GPU").upper(), thing.bar(found), thing.sentence(found))
        for number, thing in enumerate(things(found), 1)
    ]
    show_markdown(table_markdown(("no.", "on a", "each block: twice", "what to remember"), rows))


def scoreboard(word: str | None = None) -> None:
    """Show how many claims have which verdict; or those with one of them, and what they rest on.

    Raises ValueError for a word that is no verdict.
    """
    found = findings(here=recordings.kept_here())
    told = section(found, Advice(word)) if word else f"{summary(found)} {tally()}"
    show_markdown(told.rstrip())


def section(found: Sequence[Evidence], word: Advice) -> str:
    """All claims with this verdict in Markdown: a row each, every finding, every published figure."""
    claims = [claim for claim in CLAIMS if judge(claim, found).word == word]
    there = [claim for claim in claims if CLAIMS[claim].promises == "existence" and word is Advice.HOLDS]
    lines = [row(claim, found) for claim in claims if claim not in there]
    lines += _folded(f"{len(there)} more: PyTorch has what they name", [row(claim, found) for claim in there])
    lines += _folded("Every finding", [line for claim in claims for line in _behind(claim, found)])
    names = [name for name, one in collection()[1].items() if set(one.claim.split()) & set(claims)]
    behind = [f"- **{claim}** {decide(claim)[-1]}" for claim in claims if published_on(claim)]
    return "\n".join(lines + _folded("Every published figure", [*behind, *map(in_words, names)]))


def row(claim: str, found: Sequence[Evidence]) -> str:
    """A claim in Markdown: what it says, then what was found for each kind of device, what the source's own
    code does, what this machine found where it has run the chapters, and what others published.
    """
    verdict, kind = judge(claim, found), SOURCES[claim[0]].kind
    says = CLAIMS[claim].says.replace("*", r"\*")
    chapters = dict.fromkeys(one.chapter for one in found if one.claim == claim)
    links = ", ".join(f"[{chapter[:2]}]({chapter}.ipynb)" for chapter in chapters)
    lines = [f"- **{says}** {claim}, {links}"]
    for on, rule in verdict.rules.items():
        if rule != f"When {CLAIMS[claim].use}.":  # which says no more than the claim
            lines.append(f"  - *{on}*, {rule[:1].lower()}{rule[1:]}" if on else f"  - {rule}")
    if verdict.code not in (None, Code.RUNS):
        lines.append(f"  - *The {kind}'s own code* is {verdict.code}.")
    if here := span(one for one in found if one.claim == claim and one.here):
        lines.append(f"  - *This machine:* {here}")
    if published_on(claim):
        word, said, _ = decide(claim)
        lines.append(f"  - *Published by others:* **{word}** {said}".rstrip())
    return "\n".join(lines)


def _folded(head: str, lines: Sequence[str]) -> list[str]:
    return ["", f"<details><summary>{head}</summary>", "", *lines, "", "</details>"] if lines else []


def _behind(claim: str, found: Sequence[Evidence]) -> list[str]:
    """Every finding on a claim, after the words of its source."""
    words, link = CLAIMS[claim].words, CLAIMS[claim].link
    quoted = "" if not words else f" [“{words}”]({link})" if link else f" “{words}”"
    mine = [f"- {_sentence(one)}" for one in found if one.claim == claim]
    return ["", f"**{claim}** {CLAIMS[claim].says}{quoted}", "", *mine]


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


def summary(found: Sequence[Evidence]) -> str:
    """How many claims have which verdict, and whose claims they are."""
    counted = Counter(judge(claim, found).word for claim in CLAIMS)
    said = [] if any(one.on == "cuda" and not one.here for one in found) else ["No GPU was measured yet."]
    numbers = ", ".join(f"{counted[word]} {words}" for word, words in PLURAL.items() if counted[word])
    said.append(f"Of {len(CLAIMS)} claims {numbers}.")
    makers = (
        f"{name}: {f'[{one.title}]({one.link})' if one.link else one.title}" for name, one in SOURCES.items()
    )
    return f"{' '.join(said)}\n\nTheir letters say whose they are. {'; '.join(makers)}."
