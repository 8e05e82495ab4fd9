"""Pictures of chapter 10: what a mask, gather and scatter move, and what selecting costs by the share of True."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from autograder.show import GUESS, HERE, INK, LIMIT, RECORDED

PALE = {HERE: "#D6E8F4", RECORDED: "#FBEBCB", GUESS: "#F6E3EE", INK: "#F2F2F2"}
ABOVE, BELOW = 2.1, 0.0  # where the row of the numbers given and the row of the result stand


@dataclass(frozen=True)
class Move:
    """One operation: the numbers given, the result, and which goes where.

    ``notes`` are written above the numbers given, ``remarks`` below the result, each cell its own. ``arrows`` go
    from a position above to one below. Of ``lost`` arrows the number is not in the result.
    """

    title: str
    given: list[float]
    result: list[float]
    arrows: list[tuple[int, int]]
    names: tuple[str, str]
    caption: str
    notes: tuple[str, list[str]] | None = None
    remarks: tuple[str, list[str]] | None = None
    lost: frozenset[tuple[int, int]] = frozenset()

    @property
    def words(self) -> str:
        """The same facts as text."""
        arrows = ", ".join(
            f"{self.given[i]:g} from {i} to {j}" + (" (overwritten)" if (i, j) in self.lost else "")
            for i, j in self.arrows
        )
        rows = [row for row in (self.notes, self.remarks) if row]
        said = "".join(f", {name} {' '.join(cells)}" for name, cells in rows)
        return (
            f"{self.title}: {self.names[0]} {_numbers(self.given)}{said}; moved: {arrows}; "
            f"result {_numbers(self.result)}."
        )


def masked(x: torch.Tensor, mask: torch.Tensor) -> Move:
    """``x[mask]``: the chosen numbers, one after the other."""
    chosen = mask.nonzero()[:, 0].tolist()
    return Move(
        "x[mask]",
        x.tolist(),
        x[mask].tolist(),
        [(i, j) for j, i in enumerate(chosen)],
        ("x", "result"),
        "as long as there are T in the mask",
        ("mask", _flags(mask)),
    )


def joined(x: torch.Tensor, mask: torch.Tensor, other: float) -> Move:
    """``torch.where(mask, x, other)``: each number stays in its place, or the other one stands there."""
    return Move(
        f"where(mask, x, {other:g})",
        x.tolist(),
        torch.where(mask, x, other).tolist(),
        [(i, i) for i in mask.nonzero()[:, 0].tolist()],
        ("x", "result"),
        f"as long as x; yellow: the {other:g} from outside",
        ("mask", _flags(mask)),
    )


def gathered(x: torch.Tensor, index: torch.Tensor) -> Move:
    """``x.gather(0, index)``: the index says from where each number of the result comes."""
    return Move(
        "x.gather(0, index)",
        x.tolist(),
        x.gather(0, index).tolist(),
        [(i, j) for j, i in enumerate(index.tolist())],
        ("x", "result"),
        "the index says from where; as long as the index",
        remarks=("index", [str(i) for i in index.tolist()]),
    )


def scattered(x: torch.Tensor, index: torch.Tensor, values: torch.Tensor) -> Move:
    """``x.scatter(0, index, values)``: the index says where each value goes."""
    result = x.scatter(0, index, values)
    lost = {(i, j) for i, j in enumerate(index.tolist()) if result[j] != values[i]}
    caption = "dashed: overwritten" if lost else "the index says to where"
    return _to_places("x.scatter(0, index, values)", index, values, result, caption, frozenset(lost))


def added(x: torch.Tensor, index: torch.Tensor, values: torch.Tensor) -> Move:
    """``x.scatter_add(0, index, values)``: the index says to what each value is added."""
    result = x.scatter_add(0, index, values)
    return _to_places("x.scatter_add(0, index, values)", index, values, result, "all of them are in the sum")


def _to_places(
    title: str,
    index: torch.Tensor,
    values: torch.Tensor,
    result: torch.Tensor,
    caption: str,
    lost: frozenset[tuple[int, int]] = frozenset(),
) -> Move:
    return Move(
        title,
        values.tolist(),
        result.tolist(),
        list(enumerate(index.tolist())),
        ("values", "result"),
        f"{caption}; yellow: what stood in x",
        ("index", [str(i) for i in index.tolist()]),
        lost=lost,
    )


def draw_moves(*moves: Move) -> tuple[Figure, str]:
    """The operations side by side, and their alternative text."""
    figure = Figure(figsize=(7.5, 2.7), dpi=110, layout="constrained")
    for axes, move in zip(figure.subplots(1, len(moves)), moves, strict=True):
        _draw(axes, move)
    return figure, " ".join(move.words for move in moves)


def _draw(axes: Axes, move: Move) -> None:
    sources, places = {i for i, _ in move.arrows}, {j for _, j in move.arrows}
    losers = {i for i, _ in move.lost}
    for position, number in enumerate(move.given):
        colour = GUESS if position in losers else HERE if position in sources else INK
        _cell(axes, position, ABOVE, number, colour)
    for position, number in enumerate(move.result):
        _cell(axes, position, BELOW, number, HERE if position in places else RECORDED)
    for i, j in move.arrows:
        lost = (i, j) in move.lost
        axes.add_patch(
            FancyArrowPatch(
                (i + 0.5, ABOVE - 0.04),
                (j + 0.5, BELOW + 0.84),
                arrowstyle="-|>",
                mutation_scale=11,
                shrinkA=0,
                shrinkB=0,
                lw=1.6,
                linestyle=(0, (3, 2)) if lost else "solid",
                color=GUESS if lost else HERE,
                zorder=2 if lost else 3,
            )
        )
    _label(axes, ABOVE + 0.4, move.names[0])
    _label(axes, BELOW + 0.4, move.names[1])
    for row, height in ((move.notes, ABOVE + 1.12), (move.remarks, BELOW - 0.34)):
        if row:
            _label(axes, height, row[0])
            for position, text in enumerate(row[1]):
                axes.text(position + 0.5, height, text, ha="center", va="center", fontsize=9, color=INK)
    middle = (max(len(move.given), len(move.result)) - 1) / 2
    axes.text(middle, BELOW - 0.95, move.caption, ha="center", va="center", fontsize=8.5, color=INK)
    axes.set_title(move.title, fontsize=10, color=INK, family="monospace", pad=8)
    axes.set_xlim(-1.75, max(len(move.given), len(move.result)) + 0.1)
    axes.set_ylim(-1.2, ABOVE + 1.5)
    axes.set_axis_off()


def _cell(axes: Axes, position: int, height: float, number: float, colour: str) -> None:
    axes.add_patch(
        Rectangle((position + 0.04, height), 0.92, 0.8, facecolor=PALE[colour], edgecolor=colour, lw=1.1)
    )
    axes.text(position + 0.5, height + 0.4, f"{number:g}", ha="center", va="center", fontsize=10, color=INK)


def _label(axes: Axes, height: float, text: str) -> None:
    axes.text(-0.2, height, text, ha="right", va="center", fontsize=9, color=INK, style="italic")


def _flags(mask: torch.Tensor) -> list[str]:
    return ["T" if flag else "F" for flag in mask.tolist()]


def _numbers(numbers: Sequence[float]) -> str:
    return " ".join(f"{number:g}" for number in numbers)


def draw_shares(
    shares: Sequence[float], milliseconds: Mapping[tuple[str, str], Sequence[float]]
) -> tuple[Figure, str]:
    """Times of operations over the share of True; the keys are (order of the mask, operation)."""
    orders = list(dict.fromkeys(order for order, _ in milliseconds))
    operations = list(dict.fromkeys(name for _, name in milliseconds))
    styles = dict(zip(operations, ((HERE, "o"), (RECORDED, "^"), (LIMIT, "s"), (INK, "d")), strict=True))
    figure = Figure(figsize=(7.5, 3.2), dpi=110, layout="constrained")
    for axes, order in zip(figure.subplots(1, len(orders), sharey=True), orders, strict=True):
        for name in operations:
            colour, marker = styles[name]
            axes.plot(shares, milliseconds[order, name], marker=marker, ms=4, color=colour, label=name)
        axes.set(title=f"{order} mask", xlabel="share of True", ylim=(0, None))
        axes.grid(axis="y", color="#DDDDDD")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    axes.legend(fontsize=8)
    figure.axes[0].set_ylabel("ms, one CPU thread")
    half = min(range(len(shares)), key=lambda number: abs(shares[number] - 0.5))
    told = "; ".join(
        f"{name} " + ", ".join(f"{milliseconds[order, name][half]:.1f} ms {order}" for order in orders)
        for name in operations
    )
    return figure, f"Time of {len(operations)} operations over the share of True. With half chosen: {told}."
