"""The chart of a comparison, in HTML that has the colours of the page around it: bars and words."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jinja2 import Template

from ..measuring.decide import SAME
from ..measuring.duel import Ratio
from ..measuring.units import times
from .recordings import Timing

# Each has a contrast above 3:1 on white and on a dark page. Bars are borders: these are printed, and seen
# where colours are forced.
HERE, RECORDED, GUESS, LIMIT = "#2E86C1", "#C27A00", "#C0609A", "#009E73"
WIDEST = 60  # percent of the width for bars; their words have the rest
CHART = Template(Path(__file__).with_suffix(".html.j2").read_text(encoding="utf-8"), autoescape=True)


class _Bar(NamedTuple):
    ratio: float
    colour: str
    height: int
    words: str


def in_words(ratio: Ratio) -> str:
    """ "2.4× faster", "3× slower", or "no difference"."""
    none = ratio.low < 1 < ratio.high or 1 / SAME < ratio.median < SAME
    return f"no difference ({times(ratio.median)})" if none else _gain(ratio.median)


def _gain(ratio: float) -> str:
    return f"{times(ratio)} faster" if ratio >= 1 else f"{times(1 / ratio)} slower"


def draw(timings: Sequence[Timing], guess: float | None) -> str:
    """A part for each variant but the first: a bar for each machine, the guess, the limit of this machine.

    Bars begin at the first variant, on a logarithmic scale.
    """
    baseline, *_ = timings[0].seconds
    rows: dict[str, list[_Bar]] = {}
    for timing in timings:
        here, name_there = timing.origin == "here", timing.device.split(", ")[0]
        # Without its instructions and its last cache.
        device = re.sub(r"\(R\)|NVIDIA |Intel |AMD | Processor| \w+ \d+K(?=\))", "", name_there)
        style = (HERE, 10) if here else (RECORDED, 4)
        for name, ratio in timing.ratios.items():
            words = f"{in_words(ratio)}, {'here: ' * here}{device}"
            rows.setdefault(name, []).append(_Bar(ratio.median, *style, words))
    last = [*timings[0].ratios][-1]
    if guess:
        rows[last].append(_Bar(guess, GUESS, 10, f"you said {_gain(guess)}"))
    rows[last] += [
        _Bar(limit, LIMIT, 4, f"{_gain(limit)}: the limit of this machine")
        for timing in timings
        if timing.origin == "here" and (limit := timing.at_the_limit)
    ]
    ends = [math.log(bar.ratio) for bars in rows.values() for bar in bars]
    slowest, fastest = min(0, *ends), max(0, *ends)
    scale = WIDEST / max(fastest - slowest, math.log(2))
    chart = CHART.render(baseline=baseline, rows=rows, start=-slowest * scale, scale=scale, log=math.log)
    return str(chart).strip()
