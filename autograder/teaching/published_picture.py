"""What others published on a claim, as a picture with the reader's guess, and as text."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from statistics import median
from typing import TYPE_CHECKING

from ..measuring.units import times
from ..show import GUESS, INK, in_notebook, picture_html, show
from .claims import CLAIMS
from .guess import LATER, folded, ratio_guessed
from .published import Point, Published, decide, gains, published_on, ratios

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOR, AGAINST = "#56B4E9", "#D55E00"
MANY = 12
Rows = Mapping[str, Sequence[tuple[Point, bool]]]


def published(claim: str, guess: object = None) -> None:
    """Show what others published on a claim: the word by the rules of ``docs/published.md``, and a picture.

    ``guess`` is how many times faster the reader thinks that most are; while it is ``...``, all is folded.
    """
    found, (word, *why), need = published_on(claim), decide(claim), CLAIMS[claim].at_least
    head = f"What others published on {claim} ({word}): {' '.join(why).strip()}"
    counted = ratios(one for one in found if not one.aside)
    number, said = ratio_guessed(guess)
    if number and counted:
        more = sum(ratio > number for ratio in counted)
        said = f"Your guess: {times(number)}. {more:,} of the {len(counted):,} that count gain more."
    lines = [head, "No figure of this course is in it.", *filter(None, [said])]
    rows = rows_of(found)
    told = [f"{row}: {gains(sorted(point.ratio for point, _ in dots), need)}" for row, dots in rows.items()]
    html = "".join(f"<p>{escape(line)}</p>" for line in lines)
    if in_notebook():
        alternative = f"Chart: published ratios. {'; '.join(told)}."
        html += picture_html(draw_published(rows, need, number), alternative)
    html = folded(f"What others published on {claim}. {LATER}", html) if guess is ... else html
    show("\n".join([*lines, *told]), html)


def rows_of(found: Sequence[Published]) -> Rows:
    """Points, and whether they count, by the row of a picture: tables, then figures by year.

    Beside a table, a figure that does not count is left out.
    """
    tables = [one for one in found if one.table]
    figures = [one for one in found if not one.table and not (tables and one.aside)]
    rows: dict[str, list[tuple[Point, bool]]] = {}
    for one in [*tables, *sorted(figures, key=lambda one: one.date or "no")]:
        for point in one.points:
            rows.setdefault(point.row, []).append((point, not one.aside))
    return rows


def draw_published(rows: Rows, need: float, guess: float | None) -> "Figure":
    """Draw a dot for each ratio, a cross where it is below ``need``, hollow where it does not count.

    Where there are many, the median of a row is drawn, and the extremes of what counts are named.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    many = sum(map(len, rows.values())) > 2 * MANY
    height = 1.4 + (0.36 if many else 0.27) * len(rows)
    figure = Figure(figsize=(7.5, height), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    places: dict[tuple[bool, bool, int], list[tuple[float, float]]] = defaultdict(list)
    for y, dots in enumerate(rows.values()):
        size, spread = (42, 0.3) if len(dots) <= MANY else (12, 0.6) if len(dots) <= 100 else (5, 0.6)
        for number, (point, counts) in enumerate(dots):
            # Dots of one row stand beside each other, by the golden section.
            beside = spread * (number * 0.618034 % 1 - 0.5) if len(dots) > 1 else 0
            places[point.ratio >= need, counts, size].append((point.ratio, y + beside))
        if len(dots) > MANY:
            middle = median(point.ratio for point, _ in dots)
            axes.plot([middle] * 2, [y - 0.4, y + 0.4], color=INK, lw=2, zorder=5)
            axes.annotate(times(middle), (1.01, y), xycoords=("axes fraction", "data"), va="center")
    for (reaches, counts, size), dots_there in places.items():
        colour, marker = (FOR, "o") if reaches else (AGAINST, "X")
        xs, ys = zip(*dots_there, strict=True)
        face = colour if counts else "none"
        axes.scatter(xs, ys, size, marker=marker, facecolor=face, edgecolor=colour, lw=0.8, zorder=3)
    counted = [
        (one.ratio, y, one.name) for y, row in enumerate(rows.values()) for one, counts in row if counts
    ]
    box = {"facecolor": "white", "alpha": 0.8, "lw": 0, "pad": 0.5}
    for ratio, y, name in (min(counted), max(counted)) if many else ():
        side = "left" if ratio < 1 else "right"
        axes.annotate(f"{name} {times(ratio)}", (ratio, y - 0.4), fontsize=7.5, ha=side, bbox=box, zorder=6)
    reach = [guess or 1.0, 1.0, *(point.ratio for dots in rows.values() for point, _ in dots)]
    axes.set(xlim=(min(reach) / 1.3, max(reach) * 1.5), ylim=(len(rows) - 0.4, -1.4))
    if guess:
        axes.axvline(guess, color=GUESS, lw=2, ls=(0, (4, 2)), zorder=4)
        axes.plot([guess], [-1], marker="v", ms=9, color=GUESS, clip_on=False, zorder=5)
        said, ink = f"your guess {times(guess)}", "#9C3F74"
        axes.annotate(said, (guess, -1), (8, 0), textcoords="offset points", va="center", color=ink, zorder=6)
    axes.axvline(1, color=INK, lw=1, zorder=4)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(reach) / min(reach) < 200 else (1,)))
    axes.xaxis.set_major_formatter(lambda value, _: times(value))
    axes.xaxis.set_minor_formatter("")
    axes.set_yticks(range(len(rows)), list(rows), fontsize=8.5)
    legend = f"dot: published; cross: below {need:g}×; hollow: does not count"
    axes.set_xlabel(f"times better with the advice (logarithmic)\n{legend}", fontsize=8.5)
    axes.grid(axis="x", color="#DDDDDD", zorder=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure
