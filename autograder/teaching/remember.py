"""Ten things to remember, with figures that cells found out: for the claims page, README and site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ..measuring.duel import Ratio
from .claims import ScoreError, claim_called, made, tomllib
from .evidence import Evidence, span

BEGIN, END = "<!-- three of them: built by make notebooks -->", "<!-- end of the three -->"


@dataclass(frozen=True)
class Thing:
    """One of them; ``course/remember.toml`` says what its keys mean."""

    claim: str
    short: str
    says: str
    on: Literal["cpu", "cuda"]
    side: Literal["when", "unless", "both"] = "both"

    def behind(self, found: Sequence[Evidence]) -> list[Evidence]:
        """What its figures come from. Raises ScoreError where nothing was measured."""
        claim_called(self.claim)
        mine = [
            one
            for one in found
            if (one.claim, one.on, one.here) == (self.claim, self.on, False)
            and one.ratio
            and (self.side == "both" or getattr(one, self.side))
        ]
        if not mine:
            raise ScoreError(f"remember.toml, {self.claim}: nothing was measured {self.side} on {self.on}.")
        return mine

    def sentence(self, found: Sequence[Evidence], folder: str = "") -> str:
        """What to remember, as Markdown with a link to its chapter in this folder."""
        mine = self.behind(found)
        inverse = [replace(one, ratio=_inverse(one.ratio)) for one in mine if one.ratio]
        chapter = mine[0].chapter
        said = self.says.format(faster=span(mine), slower=span(inverse))
        return f"{said} ([chapter {chapter[:2]}]({folder}{chapter}.ipynb))"


def _inverse(ratio: Ratio) -> Ratio:
    return Ratio(median=1 / ratio.median, low=1 / ratio.high, high=1 / ratio.low)


def things(course: Path) -> list[Thing]:
    """All of them, in the order of the file; none without it. Raises ScoreError for one that is not whole."""
    if not (path := course / "remember.toml").exists():
        return []
    given = tomllib.loads(path.read_text(encoding="utf-8"))["thing"]
    return [made(Thing, one.get("claim", "?"), one, path) for one in given]


def with_three(readme: str, found: Sequence[Evidence], course: Path) -> str:
    """The README with the first three between its two marks. Raises ScoreError where they are missing."""
    before, mark, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise ScoreError(f"the README lacks {BEGIN!r} or {END!r}.")
    sentences = [f"- {thing.sentence(found, 'course/')}" for thing in things(course)[:3]]
    return "\n".join([f"{before}{BEGIN}", *sentences, f"{END}{after}"])
