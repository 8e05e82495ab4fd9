"""Ten things to remember, with figures that cells found out: for the claims page, README and site."""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Literal

import msgspec

from .claims import ScoreError, claim_called, made
from .evidence import Evidence, figures

FILE = Path(__file__).with_suffix(".toml")
BEGIN, END = "<!-- three of them: built by make notebooks -->", "<!-- end of the three -->"


class Thing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of them; ``remember.toml`` says what its keys mean."""

    claim: str
    says: str
    on: Literal["cpu", "cuda"]
    side: Literal["when", "unless", "both"] = "both"
    about: str = ""

    def behind(self, found: Sequence[Evidence]) -> list[Evidence]:
        """What its figures come from: nothing in a course that lacks its chapter."""
        claim_called(self.claim)
        return [
            one
            for one in found
            if (one.claim, one.on, one.here) == (self.claim, self.on, False)
            and one.ratio
            and (self.side == "both" or getattr(one, self.side))
            and self.about in one.what
        ]

    def bar(self, found: Sequence[Evidence]) -> str:
        """How far its figures are from 1, the least of them and the most: a block for each factor of 2."""
        logs = [math.log2(one.ratio.median) for one in self.behind(found) if one.ratio]
        least, most = (max(1, round(end)) for end in (min(map(abs, logs)), max(map(abs, logs))))
        word, blocks = "slower" if median(logs) < 0 else "faster", "█" * least + "░" * (most - least)
        return f'{word} <span aria-hidden="true">{blocks}</span>'

    def sentence(self, found: Sequence[Evidence], folder: str = "") -> str:
        """What to remember, as Markdown with a link to its chapter in this folder."""
        mine = self.behind(found)
        said, chapter = self.says.format(figures=figures(mine)), mine[0].chapter
        return f"{said} ([chapter {chapter[:2]}]({folder}{chapter}.ipynb))"


def things(found: Sequence[Evidence], path: Path = FILE) -> list[Thing]:
    """Those that these findings have figures for, in the order of the file. Raises ScoreError for one that
    does not say what it must.
    """
    given = msgspec.toml.decode(path.read_bytes())["thing"]
    chosen = [made(Thing, one.get("claim", "?"), one, path) for one in given]
    return [thing for thing in chosen if thing.behind(found)]


def with_three(readme: str, found: Sequence[Evidence]) -> str:
    """The README with the first three between its two marks. Raises ScoreError where these are missing."""
    before, mark, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise ScoreError(f"the README lacks {BEGIN!r} or {END!r}.")
    sentences = [f"- {thing.sentence(found, 'course/')}" for thing in things(found)[:3]]
    return "\n".join([f"{before}{BEGIN}", *sentences, f"{END}{after}"])
