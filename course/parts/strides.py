"""A picture of one small batch: what its indices are, and where memory has its numbers in two formats."""

from __future__ import annotations

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from autograder.show import HERE, INK, LIMIT, RECORDED

COLOURS = (HERE, RECORDED, LIMIT)
DIMENSIONS = "NCHW"


def in_memory(tensor: torch.Tensor) -> list[int]:
    """The numbers of a tensor without gaps, in the order in which they lie in memory."""
    return tensor.as_strided((tensor.numel(),), (1,)).tolist()


def draw_formats(default: torch.Tensor, last: torch.Tensor) -> tuple[Figure, str]:
    """The channels of one picture, and the memory of its two formats with their strides; and the same in words.

    Both tensors hold 0, 1, 2, …: the same shape (1, 3, H, W) in default order and in channels_last.
    """
    _, channels, height, width = default.shape
    cells = default.numel()
    figure = Figure(figsize=(7.4, 4.9), dpi=110)
    figure.set_layout_engine("constrained")
    grids, *lines = figure.subplots(3, 1, height_ratios=(1.1, 1.2, 1.2))
    for axes in (grids, *lines):
        axes.set_xlim(-1.6, cells + 0.1)
        axes.set_aspect("equal")
        axes.axis("off")
        axes.set_anchor("W")

    grids.set_ylim(-0.1, height + 0.75)
    grids.set_title(f"One picture: {channels} channels of {height} × {width} pixels", loc="left", fontsize=11)
    step = cells / channels
    for channel in range(channels):
        left = channel * step + (step - width) / 2
        grids.text(left + width / 2, height + 0.3, f"channel {channel}", ha="center", fontsize=10, color=INK)
        for row in range(height):
            for column in range(width):
                value = int(default[0, channel, row, column])
                _cell(grids, left + column, height - 1 - row, value, channel)

    words = []
    for axes, tensor, name in zip(lines, (default, last), ("default", "channels_last"), strict=True):
        strides = tensor.stride()
        numbers = in_memory(tensor)
        jumps = [(DIMENSIONS[dim], strides[dim]) for dim in (1, 2, 3)]
        axes.set_ylim(-0.15, 2.7)
        axes.set_title(f"Memory, {name}: strides {strides}", loc="left", fontsize=11)
        for place, value in enumerate(numbers):
            _cell(axes, place, 0, value, value // (height * width))
        for rank, (dimension, stride) in enumerate(sorted(jumps, key=lambda jump: jump[1])):
            _arc(axes, stride, f"next {dimension}: {stride}", rank)
        told = ", ".join(f"{stride} to the next {dimension}" for dimension, stride in jumps)
        words.append(f"In {name} order memory holds {', '.join(map(str, numbers))}; the strides are {told}.")
    shape = f"One picture of {channels} channels with {height} × {width} pixels, numbered channel by channel"
    return figure, f"{shape}. {' '.join(words)}"


def _cell(axes: Axes, left: float, bottom: float, value: int, channel: int) -> None:
    axes.add_patch(
        Rectangle((left, bottom), 1, 1, facecolor=COLOURS[channel], alpha=0.35, edgecolor=INK, lw=1)
    )
    axes.text(left + 0.5, bottom + 0.47, str(value), ha="center", va="center", fontsize=12, color=INK)


def _arc(axes: Axes, stride: int, label: str, rank: int) -> None:
    """From the first number to the one that is ``stride`` further on; the ``rank``-th lies higher."""
    top = 1.25 + 0.55 * rank
    axes.plot([0.5, 0.5, stride + 0.5], [1.0, top, top], color=INK, lw=1.3, solid_capstyle="round")
    axes.add_patch(
        FancyArrowPatch(
            (stride + 0.5, top),
            (stride + 0.5, 1.0),
            arrowstyle="-|>",
            mutation_scale=11,
            color=INK,
            shrinkB=0,
        )
    )
    axes.text(0.3, top, label, ha="right", va="center", fontsize=10.5, color=INK)
