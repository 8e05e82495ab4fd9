"""Two drawings for attention: memory that grows with the length, and who attends to whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure

from autograder.show import HERE, INK, RECORDED

COLOURS = (RECORDED, HERE, "#009E73")


def draw_growth(lengths: Sequence[int], megabytes: Mapping[str, Sequence[float]]) -> tuple[Figure, str]:
    """Memory against the length, one line for each way, on two logarithmic axes; and the same in words."""
    figure = Figure(figsize=(6.6, 3.4), dpi=110, layout="constrained")
    axes = figure.subplots()
    for colour, (name, values) in zip(COLOURS, megabytes.items(), strict=False):
        axes.plot(lengths, values, "o-", color=colour, ms=6, lw=1.6)
        axes.annotate(
            name, (lengths[-1], values[-1]), (8, 0), textcoords="offset points", va="center", color=INK
        )
    axes.set(
        xscale="log",
        yscale="log",
        xlim=(lengths[0] / 1.2, lengths[-1] * 2.6),
        xlabel="positions (logarithmic)",
        ylabel="most new memory at once, MB",
    )
    axes.set_xticks(list(lengths), [f"{length:,}" for length in lengths])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.spines[["top", "right"]].set_visible(False)
    told = "; ".join(
        f"{name} from {values[0]:.2g} to {values[-1]:.3g} MB" for name, values in megabytes.items()
    )
    return figure, (
        f"Lines on two logarithmic axes: the most new memory at once, for {lengths[0]:,} to "
        f"{lengths[-1]:,} positions. {told}."
    )


def draw_weights(tables: Mapping[str, torch.Tensor], last: int) -> tuple[Figure, str]:
    """Tables of attention weights beside each other: rows are queries, columns keys; and the same in words.

    ``last`` is the number of the last query of each table.
    """
    figure = Figure(figsize=(8.4, 3.2), dpi=110, layout="constrained")
    places = figure.subplots(1, len(tables), sharex=True, squeeze=False)[0]
    told = []
    for axes, (name, weights) in zip(places, tables.items(), strict=True):
        rows, columns = weights.shape
        axes.imshow(weights, cmap="Blues", vmin=0, vmax=1)
        for row, column in weights.nonzero().tolist():
            value = weights[row, column].item()
            axes.text(
                column,
                row,
                f"{value:.2f}".lstrip("0"),
                ha="center",
                va="center",
                fontsize=6.5,
                color="white" if value > 0.6 else INK,
            )
        axes.set_title(name, fontsize=9.5)
        axes.set(xlabel="key", ylabel="query")
        axes.set_xticks(range(columns))
        axes.set_yticks(range(rows), range(last + 1 - rows, last + 1))
        axes.tick_params(labelsize=7)
        seen = ", ".join(str(number) for number in (weights > 0).sum(1).tolist())
        told.append(f"{name}: the queries look at {seen} keys")
    return figure, "Tables of attention weights, queries down and keys across. " + "; ".join(told) + "."
