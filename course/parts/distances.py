"""Pictures for the chapter on distances: errors far from 0, and digits beside their nearest neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure

from autograder.show import GUESS, HERE, INK, LIMIT

STYLES = [(GUESS, "o"), (HERE, "s"), (LIMIT, "^")]


def chart_of_errors(
    offsets: Sequence[int], errors: Mapping[str, Sequence[float]], typical: float
) -> tuple[Figure, str]:
    """The largest error of some ways to compute distances against where the points lie, and the same in words."""
    figure = Figure(figsize=(7, 3.6), dpi=110, layout="constrained")
    axes = figure.subplots()
    for (name, values), (colour, marker) in zip(errors.items(), STYLES, strict=True):
        axes.plot(offsets, values, marker=marker, color=colour, lw=2, label=name)
    axes.axhline(typical, color=INK, lw=1, ls="--")
    axes.annotate(
        "a typical distance",
        (offsets[0], typical),
        (0, 4),
        textcoords="offset points",
        color=INK,
        fontsize=8.5,
    )
    axes.set(xscale="log", yscale="log", ylim=(1e-7, 60))
    axes.set_xlabel("where the points lie: around …", fontsize=8.5)
    axes.set_ylabel("largest error of a distance", fontsize=8.5)
    axes.set_xticks(offsets, [f"{offset:,}" for offset in offsets])
    axes.grid(color="#DDDDDD")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8.5, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    told = "; ".join(
        f"{name}: "
        + ", ".join(f"{value:.1g} at {offset:,}" for offset, value in zip(offsets, values, strict=True))
        for name, values in errors.items()
    )
    return (
        figure,
        f"Chart: largest error of a distance, by where the points lie. {told}. Typical: {typical:.2g}.",
    )


def draw_mistakes(
    pictures: torch.Tensor, labels: torch.Tensor, pairs: Sequence[tuple[int, int]]
) -> tuple[Figure, str]:
    """Some digits, each above its nearest neighbour, and the same in words."""
    figure = Figure(figsize=(7.5, 2.4), dpi=110, layout="constrained")
    for column, pair in enumerate(pairs):
        for line, index in enumerate(pair):
            axes = figure.add_subplot(2, len(pairs), line * len(pairs) + column + 1)
            axes.imshow(pictures[index], cmap="gray_r")
            axes.set(xticks=[], yticks=[])
            axes.set_title(f"{('digit', 'nearest')[line]}: {labels[index]}", fontsize=8)
    told = ", ".join(f"{labels[i]} and {labels[j]}" for i, j in pairs)
    return figure, f"Digits of 8 × 8 pixels, each above its nearest neighbour, from left to right: {told}."
