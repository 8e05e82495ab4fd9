"""The result of a test cell: one of six words, points, and what the student should read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from ..measuring.units import seconds as as_time
from ..show import show, visible
from . import progress

MIME = "application/vnd.autograder.outcome+json"
# A formula could draw another card over this one. The first word is for nbconvert's pages, the second for
# JupyterLab's.
NO_FORMULAS = "tex2jax_ignore mathjax_ignore"
# How a line of a card begins that passes on what an answer wrote.
WARNED = "Your code warned (no points lost): "

# Word -> sign and colours (text, background) of the card; every pair has a contrast above 7:1.
STYLES = {
    "passed": ("✓", "#0b4a2b", "#e3f4ea"),
    "failed": ("✗", "#7a1512", "#fdeceb"),
    "error": ("!", "#7a1512", "#fdeceb"),
    "not attempted": ("○", "#3a3a3a", "#efefef"),
    "undecided": ("?", "#5a3d00", "#fff3d6"),
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
    def passed(self) -> bool:
        """Whether nothing is left to do."""
        return self.word == "passed"

    def text(self) -> str:
        """The card as plain text."""
        sign = STYLES[self.word][0]
        lines = [f"{sign} {self.word}: {self.summary} ({self.points:g} of {self.max_points:g} points)"]
        lines += [f"  {line}" for detail in self.details for line in detail.split("\n")]
        longest, width = max(self.bars.values(), default=1), max(map(len, self.bars), default=0)
        for name, seconds in self.bars.items():
            block = "█" * max(1, round(40 * seconds / longest))
            lines.append(f"  {name.ljust(width)}  {block} {as_time(seconds)}")
        return "\n".join(lines)

    def html(self) -> str:
        """The card as HTML: word, points, details, and for a race one bar for each time."""
        sign, ink, paper = STYLES[self.word]
        details = "".join(
            f'<div style="margin:4px 0;white-space:pre-wrap">{escape(detail)}</div>'
            for detail in self.details
        )
        return (
            f'<div role="status" class="{NO_FORMULAS}" style="border-left:6px solid {ink};background:{paper};'
            f'color:{ink};padding:8px 12px;font-size:14px;line-height:1.45;max-width:60em;overflow:auto">'
            f"<div><b>{sign} {self.word}</b>: {escape(self.summary)} "
            f"<b>({self.points:g} of {self.max_points:g} points)</b></div>{details}{self._bars_html()}</div>"
        )

    def _bars_html(self) -> str:
        if not self.bars:
            return ""
        longest = max(self.bars.values())
        rows = "".join(
            f'<tr style="background:transparent">'
            f'<td style="text-align:right;color:inherit;padding:1px 8px">{escape(name)}</td>'
            f'<td style="width:24em;text-align:left"><div style="height:0.9em;background:#0072B2;'
            f'width:{max(0.5, 100 * seconds / longest):.1f}%"></div></td>'
            f'<td style="text-align:left;color:inherit;padding:1px 8px">{as_time(seconds)}</td></tr>'
            for name, seconds in self.bars.items()
        )
        return f'<table aria-label="time per call" style="margin:6px 0;border:0;color:inherit">{rows}</table>'

    @property
    def data(self) -> dict[str, object]:
        """What the card says, for programs."""
        return {
            "outcome": self.word,
            "points": self.points,
            "max_points": self.max_points,
            "message": self.summary,
            **self.facts,
        }

    def show(self) -> Outcome:
        """Display the card (or print it where there is no notebook) and give the outcome itself.

        In an exercise's notebook, a passed test is kept as the reader's progress.
        """
        progress.note_outcome(self.word)
        show(self.text(), self.html(), {MIME: self.data})
        return self


def partial_points(earned: float, most: float, none: str, full: str) -> str:
    """How points between nothing and all came about."""
    return f"{earned:g} of {most:g} points: they grow with the logarithm, from 0 at {none} to all at {full}."


def notes(warnings: Sequence[str]) -> list[str]:
    """Lines for a card that pass on what the answer wrote to its error stream; it costs no points."""
    return [WARNED + " ".join(line.splitlines()) for line in dict.fromkeys(warnings)]
