"""Pictures of chapter 12: pixels as they are, and the weights that make a smaller line of a longer one."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from autograder.show import HERE, INK

DPI = 100


def as_figure(pixels: torch.Tensor) -> Figure:
    """A picture of shape (3, H, W) or (1, H, W), bytes or numbers from 0 to 1, each pixel a pixel."""
    height, width = pixels.shape[-2:]
    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI)
    figure.figimage(pixels.expand(3, -1, -1).permute(1, 2, 0).cpu().numpy())
    return figure


def draw_weights(ways: Mapping[str, torch.Tensor]) -> tuple[Figure, str]:
    """Tables of weights, one above the other, and their alternative text.

    Each has a row for a pixel of the result, and a column for a pixel of the line that it is made of.
    """
    figure = Figure(figsize=(7.5, 1.7 * len(ways)), dpi=110, layout="constrained")
    texts = []
    for axes, (title, weights) in zip(figure.subplots(len(ways), 1), ways.items(), strict=True):
        lost = [column for column, weight in enumerate(weights.abs().amax(0).tolist()) if weight < 1e-6]
        _draw(axes, title, weights, lost)
        texts.append(
            f"{title}: {weights.shape[1]} pixels to {weights.shape[0]}; each is made of at most "
            f"{int((weights.abs() > 1e-6).sum(1).max())}; "
            + (f"without influence: {', '.join(map(str, lost))}." if lost else "all have an influence.")
        )
    return figure, " ".join(texts)


def _draw(axes: Axes, title: str, weights: torch.Tensor, lost: list[int]) -> None:
    rows, columns = weights.shape
    largest = weights.max().item()
    for row, numbers in enumerate(weights.tolist()):
        for column, weight in enumerate(numbers):
            some = weight > 1e-6
            axes.add_patch(
                Rectangle((column, row), 1, 1, fc="#F2F2F2" if column not in lost else "#F6E3EE", ec="white")
            )
            if some:
                shade = weight / largest
                axes.add_patch(Rectangle((column, row), 1, 1, fc=HERE, alpha=0.2 + 0.8 * shade, ec="white"))
                text = f"{weight:.2f}".removeprefix("0")
                colour = "white" if shade > 0.7 else INK
                axes.text(column + 0.5, row + 0.53, text, ha="center", va="center", size=8, color=colour)
    for column in lost:
        axes.text(column + 0.5, rows + 0.45, "lost", ha="center", va="center", size=8, color="#9C3F74")
    axes.set(xlim=(0, columns), ylim=(rows + (0.8 if lost else 0.1), 0))
    axes.set_xticks([column + 0.5 for column in range(columns)], list(map(str, range(columns))), fontsize=8)
    axes.set_yticks([row + 0.5 for row in range(rows)], [f"result {row}" for row in range(rows)], fontsize=8)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_title(title, fontsize=9.5, loc="left")
    for side in axes.spines.values():
        side.set_visible(False)
