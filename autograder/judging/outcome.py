"""The result of a test cell: one of six words, points, and what the student should read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from jinja2 import Template

from ..measuring.units import as_time
from ..show import show, visible
from . import progress

MIME = "application/vnd.autograder.outcome+json"
# How a line of a card begins that passes on what an answer wrote.
WARNED = "Your code warned (no points lost): "
HINTS = "Not for the first time: the hints below the task unfold one by one."

_SOURCE = Path(__file__).with_name("card.html.j2").read_text(encoding="utf-8")
CARD: Template = Template(_SOURCE, autoescape=True, trim_blocks=True)
# How a card looks: sign and colours (text, background) by its head; every pair has a contrast above 7:1.
STYLES = {
    "passed": ("✓", "#0b4a2b", "#e3f4ea"),
    "failed": ("✗", "#7a1512", "#fdeceb"),
    "right, not fast yet": ("◐", "#5a3d00", "#fff3d6"),
    "error": ("!", "#7a1512", "#fdeceb"),
    "not attempted": ("○", "#3a3a3a", "#efefef"),
    "undecided": ("?", "#173f5f", "#e4eff8"),
    "not available": ("–", "#173f5f", "#e4eff8"),
}


@dataclass(frozen=True)
class Outcome:
    """What a test cell found: the value of ``check`` and ``race``. ``bars`` are seconds per call, by name.

    Its ``repr`` is the points as a number, which is how nbgrader reads partial credit from a cell's result.
    Characters that do not show, or that change how others show, become escapes: a card may quote an answer.
    """

    word: str
    points: float
    max_points: float
    summary: str
    details: Sequence[str] = ()
    bars: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "summary", visible(self.summary).replace("\n", " "))
        object.__setattr__(self, "details", tuple(map(visible, self.details)))

    def __repr__(self) -> str:
        return f"{self.points:g}"

    @property
    def head(self) -> str:
        """The word of the card: only what is right is timed, so that has not failed."""
        return "right, not fast yet" if self.word == "failed" and self.bars else self.word

    def text(self) -> str:
        """The card as plain text."""
        sign = STYLES[self.head][0]
        lines = [f"{sign} {self.head}: {self.summary} ({self.points:g} of {self.max_points:g} points)"]
        lines += [f"  {line}" for detail in self.details for line in detail.split("\n")]
        longest, width = max(self.bars.values(), default=1), max(map(len, self.bars), default=0)
        for name, seconds in self.bars.items():
            block = "█" * max(1, round(40 * seconds / longest))
            lines.append(f"  {name.ljust(width)}  {block} {as_time(seconds)}")
        return "\n".join(lines)

    def html(self) -> str:
        """The card as HTML: word, points, details, and for a race one bar for each time."""
        sign, ink, paper = STYLES[self.head]
        longest = max(self.bars.values(), default=1)
        return str(CARD.render(card=self, sign=sign, ink=ink, paper=paper, longest=longest, as_time=as_time))

    @property
    def data(self) -> dict[str, object]:
        """What the card says, for programs."""
        said = {"outcome": self.word, "message": self.summary}
        return {**said, "points": self.points, "max_points": self.max_points, **self.facts}

    def show(self) -> "Outcome":
        """Display the card (or print it where there is no notebook) and give the outcome itself.

        In an exercise's notebook, a passed test is kept as the reader's progress; from the second failure on,
        the card names the hints.
        """
        told = replace(self, details=[*self.details, HINTS]) if progress.note_outcome(self.word) > 1 else self
        show(told.text(), told.html(), {MIME: self.data})
        return self


def partial_points(earned: float, most: float, none: str, full: str) -> str:
    """How points between nothing and all came about."""
    return f"{earned:g} of {most:g} points: they grow with the logarithm, from 0 at {none} to all at {full}."


def notes(warnings: Sequence[str]) -> list[str]:
    """Lines for a card that pass on what the answer wrote to its error stream; it costs no points."""
    return [WARNED + " ".join(line.splitlines()) for line in dict.fromkeys(warnings)]
