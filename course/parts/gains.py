"""A chart of what each change of a script brought: time saved, and times faster than the version before."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from matplotlib.figure import Figure

from autograder.measuring.duel import Ratio, Samples
from autograder.show import HERE, INK, RECORDED

Step = tuple[
    str, float, Ratio
]  # a name, the share of the whole time that was saved, the ratio to the one before


def gains(samples: Samples, names: Sequence[str], chapters: Sequence[str]) -> list[Step]:
    """What each of these versions brought, compared with the one before; ``chapters`` has one entry fewer."""
    total = median(samples.seconds(names[0]))
    return [
        (
            f"{after} (chapter {chapter})",
            (median(samples.seconds(before)) - median(samples.seconds(after))) / total,
            samples.ratio(before, after),
        )
        for (before, after), chapter in zip(pairwise(names), chapters, strict=True)
    ]


def chart_of_gains(steps: Sequence[Step]) -> Figure:
    """Two rows of bars beside each other: how much each step saved, and how many times faster it made the rest."""
    figure = Figure(figsize=(8.5, 3.4), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for y, (_, saved, ratio) in enumerate(steps):
        left.barh(y, 100 * saved, color=HERE)
        right.barh(y, ratio.median - 1, left=1, color=RECORDED)
        right.plot([ratio.low, ratio.high], [y, y], color=INK, lw=1.6)
        for axes, place, text in (
            (left, max(100 * saved, 0), f"{round(100 * saved)} %"),
            (right, max(ratio.median, ratio.high, 1), f"{ratio.median:.2f}×"),
        ):
            axes.annotate(text, (place, y), (5, 0), textcoords="offset points", va="center")
    left.set_yticks(range(len(steps)), [name.replace(" (", "\n(") for name, *_ in steps], fontsize=8)
    left.invert_yaxis()
    savings = [130 * saved for _, saved, _ in steps]
    left.set(title="saved, in % of the slow script", xlim=(min(0, *savings), max(savings)))
    right.set(
        title="times faster than the version before",
        xlim=(0.9 * min(r.low for *_, r in steps), 1.25 * max(r.high for *_, r in steps)),
    )
    right.axvline(1, color=INK, lw=1)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.title.set_size(9.5)
    return figure
