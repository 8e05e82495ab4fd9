"""A ring all-reduce played in one process, step by step; and pictures of it and of DDP's buckets over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from autograder.show import HERE, INK, LIMIT, RECORDED

Move = tuple[int, int, int]  # from this rank, to this rank, the number of the piece


def ring_all_reduce(buffers: Sequence[torch.Tensor]) -> Iterator[list[Move]]:
    """Sum the ranks' buffers into every one of them; gives after each step what has travelled."""
    n = len(buffers)
    pieces = [buffer.tensor_split(n) for buffer in buffers]  # views of the buffers
    for step in range(n - 1):  # the sums grow
        moves = [(rank, (rank + 1) % n, (rank - step) % n) for rank in range(n)]
        for sender, receiver, i in moves:
            pieces[receiver][i].add_(pieces[sender][i])
        yield moves
    for step in range(n - 1):  # the sums go round
        moves = [(rank, (rank + 1) % n, (rank + 1 - step) % n) for rank in range(n)]
        for sender, receiver, i in moves:
            pieces[receiver][i].copy_(pieces[sender][i])
        yield moves


def ring_picture(values: Sequence[Sequence[float]]) -> tuple[Figure, str]:
    """The ring on these numbers, one for each rank and piece; the figure, and what it shows in words."""
    ranks = len(values)
    buffers = [torch.tensor(row) for row in values]
    summed = [[1] * ranks for _ in range(ranks)]  # of how many ranks a piece holds the numbers
    figure = Figure(figsize=(7.5, 3.1), dpi=120)
    columns = figure.subplots(1, 2 * ranks - 1)
    figure.subplots_adjust(left=0.075, right=0.995, top=0.83, bottom=0.14, wspace=0.22)
    told = [_state(columns[0], "before", buffers, summed, [])]
    for number, moves in enumerate(ring_all_reduce(buffers), 1):
        growing = number < ranks
        before = [row.copy() for row in summed]
        for sender, receiver, i in moves:
            summed[receiver][i] = before[sender][i] + (1 if growing else 0)
        told.append(_state(columns[number], f"step {number}", buffers, summed, moves))
    for rank in range(ranks):
        columns[0].text(-0.12, rank + 0.5, f"rank {rank}", ha="right", va="center", fontsize=9, color=INK)
    middle = [sum(axes.get_position().intervalx) / 2 for axes in columns]
    for text, first, last in (("the sums grow", 1, ranks - 1), ("the sums go round", ranks, 2 * ranks - 2)):
        where = (middle[first] + middle[last]) / 2
        figure.text(where, 0.95, text, ha="center", va="center", fontsize=10, weight="bold", color=INK)
    for n in range(1, ranks + 1):
        x = 0.12 + 0.28 * (n - 1)
        figure.patches.append(
            Rectangle(
                (x, 0.035), 0.025, 0.05, transform=figure.transFigure, fc=_shade(n, ranks), ec=INK, lw=0.6
            )
        )
        of = "one rank's own" if n == 1 else f"the sum of {n}" if n < ranks else f"the sum of all {n}"
        figure.text(x + 0.035, 0.06, of, va="center", fontsize=8.5, color=INK)
    return figure, f"A ring all-reduce of {ranks} ranks, each with {ranks} pieces. " + " ".join(told)


def _state(
    axes: Any, title: str, buffers: Sequence[torch.Tensor], summed: list[list[int]], moves: list[Move]
) -> str:
    """Draw what the ranks hold after a step; say it in words."""
    ranks = len(buffers)
    arrived = {(receiver, i) for _, receiver, i in moves}
    for rank, buffer in enumerate(buffers):
        for i, value in enumerate(buffer.tolist()):
            shade = _shade(summed[rank][i], ranks)
            axes.add_patch(Rectangle((i, rank), 1, 1, fc=shade, ec="white", lw=2.5))
            dark = sum(to_rgb(shade)) < 1.6
            new = (rank, i) in arrived
            axes.text(
                i + 0.5,
                rank + 0.5,
                f"{value:g}",
                ha="center",
                va="center",
                fontsize=9.5,
                color="white" if dark else INK,
                weight="bold" if new else "normal",
            )
    for sender, receiver, i in moves:
        far = receiver < sender  # from the last rank back to the first: around the outside
        start, end = (
            ((i + 0.5, ranks), (i + 0.5, 0))
            if far
            else ((i + 0.5, sender + 0.77), (i + 0.5, receiver + 0.25))
        )
        if far:  # out at the bottom, in at the top
            for tail, head in (
                ((start[0], ranks - 0.24), (start[0], ranks + 0.26)),
                ((end[0], -0.26), (end[0], 0.24)),
            ):
                axes.add_patch(_arrow(tail, head))
        else:
            axes.add_patch(_arrow(start, end))
    axes.set_xlim(-0.05, ranks + 0.05)
    axes.set_ylim(ranks + 0.3, -0.3)
    axes.set_title(title, fontsize=9.5, color=INK, pad=3)
    axes.axis("off")
    rows = "; ".join(f"rank {rank} holds {buffer.tolist()}" for rank, buffer in enumerate(buffers))
    return f"{title.capitalize()}: {rows}."


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> FancyArrowPatch:
    return FancyArrowPatch(
        start,
        end,
        arrowstyle="-|>",
        mutation_scale=9,
        color=RECORDED,
        lw=1.8,
        zorder=4,
        clip_on=False,
        shrinkA=0,
        shrinkB=0,
    )


def _shade(number: int, of: int) -> tuple[float, ...]:
    """From pale to the full colour."""
    share = 0.15 + 0.85 * (number - 1) / (of - 1)
    return tuple(1 - share * (1 - part) for part in to_rgb(HERE))


def buckets_picture(steps: Mapping[str, Mapping[str, Any]]) -> tuple[Figure, str]:
    """One backward pass for each setting: when gradients were ready, and when their messages travelled.

    Each has the seconds "ready" and "end", and "buckets": bytes, and when a message left and arrived.
    """
    figure = Figure(figsize=(7.5, 0.9 + 1.15 * len(steps)), dpi=120)
    rows = figure.subplots(len(steps), 1, sharex=True)
    figure.subplots_adjust(left=0.135, right=0.985, top=0.93, bottom=0.15, hspace=0.5)
    last = max(step["end"] for step in steps.values()) * 1e3
    told = []
    for axes, (setting, step) in zip(rows, steps.items(), strict=True):
        ready, end = [when * 1e3 for when in step["ready"]], step["end"] * 1e3
        axes.barh(0, max(ready), height=0.62, color=LIMIT, alpha=0.85)
        axes.vlines(ready, -0.31, 0.31, color="white", lw=1.2)
        sent = [(size / 1e6, left * 1e3, came * 1e3) for size, left, came in step["buckets"]]
        for number, (size, left, came) in enumerate(sent):
            y = 1 + 0.42 * number / max(1, len(sent) - 1) if len(sent) > 2 else 1.2
            height = 0.5 / max(1, len(sent) - 1) if len(sent) > 2 else 0.62
            axes.barh(y, came - left, left=left, height=height, color=RECORDED, ec="white", lw=0.6)
            if len(sent) <= 2:
                fits = came - left > 0.12 * last
                x, side = ((left + came) / 2, "center") if fits else (came + 0.008 * last, "left")
                axes.text(x, y, f"{size:.1f} MB", ha=side, va="center", fontsize=8, color=INK)
        axes.axvline(end, ymin=0.02, ymax=0.98, color=INK, lw=1.4)
        axes.text(
            end + last * 0.008, -0.02, f"{end:.0f} ms", va="center", fontsize=9, weight="bold", color=INK
        )
        axes.set_title(setting, fontsize=9.5, loc="left", color=INK, pad=3)
        axes.set_yticks([0, 1.2], ["backward", "messages"], fontsize=8.5)
        axes.set_ylim(1.7, -0.5)
        axes.set_xlim(0, last * 1.09)
        axes.tick_params(axis="y", length=0)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        journeys = ", ".join(f"{size:.1f} MB from {left:.0f} to {came:.0f} ms" for size, left, came in sent)
        told.append(
            f"{setting}: gradients ready until {max(ready):.0f} ms; messages: {journeys}; done at {end:.0f} ms."
        )
    rows[-1].set_xlabel(
        "milliseconds from the start of the backward pass; white lines: a gradient is ready", fontsize=8.5
    )
    return figure, "Buckets over time. " + " ".join(told)
