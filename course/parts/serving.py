"""A model's training, and drawings for a server: the time of a call, who has a place, how long users wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure

from autograder.show import HERE, INK, RECORDED

COLOURS = (RECORDED, HERE)


def teach(
    model: torch.nn.Module, scores: Callable, numbers: torch.Tensor, steps: int, length: int = 112
) -> float:
    """Train a model to foretell the next letter, on two pieces of a text in each step; gives its last loss.

    ``scores`` makes of letters, (texts, length), the scores of the next one after each; ``numbers`` is the text.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, fused=True)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=steps, pct_start=0.15)
    loss = torch.zeros(())
    for _ in range(steps):
        pieces = numbers[torch.randint(len(numbers) - length, (2, 1)) + torch.arange(length + 1)]
        loss = F.cross_entropy(scores(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rates.step()
    return loss.item()


def draw_sweep(milliseconds: Mapping[int, float]) -> tuple[Figure, str]:
    """The time of a call against its letters, on two logarithmic axes, with what twice the first one is."""
    sizes, times = list(milliseconds), list(milliseconds.values())
    figure = Figure(figsize=(6.6, 3.4), dpi=110, layout="constrained")
    axes = figure.subplots()
    axes.plot(sizes, times, "o-", color=HERE, ms=6, lw=1.6)
    for factor, name in ((1, "a call for one letter"), (2, "twice that")):
        axes.axhline(factor * times[0], color=RECORDED, ls="--", lw=1)
        axes.annotate(name, (sizes[-1], factor * times[0]), ha="right", va="bottom", color=INK)
    axes.set(xscale="log", yscale="log", xlabel="letters in a call (logarithmic)", ylabel="ms (logarithmic)")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.spines[["top", "right"]].set_visible(False)
    told = ", ".join(f"{size}: {time:.3g}" for size, time in milliseconds.items())
    return (
        figure,
        f"A line on two logarithmic axes: milliseconds of a call, by its number of letters. {told}.",
    )


def draw_turns(turns: Mapping[str, Sequence[Sequence[int]]], slots: int) -> tuple[Figure, str]:
    """How many of the places have a text that still grows, in each step, one row for each way to serve."""
    figure = Figure(figsize=(7.4, 3.4), dpi=110, layout="constrained")
    rows = figure.subplots(len(turns), 1, sharex=True, squeeze=False)[:, 0]
    told = []
    for axes, colour, (name, steps) in zip(rows, COLOURS, turns.items(), strict=False):
        numbers = [len(step) for step in steps]
        axes.fill_between(range(len(numbers)), numbers, step="post", color=colour, lw=0)
        axes.set(ylim=(0, slots), yticks=(0, slots), ylabel="places")
        axes.set_title(f"{name}: {len(numbers)} steps", fontsize=9.5, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        told.append(f"{name}: {len(numbers)} steps, in the mean {mean(numbers):.1f} of {slots} places in use")
    rows[-1].set_xlabel("step")
    return figure, "Areas over the steps of a server: places in use. " + "; ".join(told) + "."


def draw_waits(waits: Mapping[str, Sequence[float]]) -> tuple[Figure, str]:
    """The share of requests that waited longer than so many seconds, a line for each way to serve."""
    figure = Figure(figsize=(6.6, 3.4), dpi=110, layout="constrained")
    axes = figure.subplots()
    told = []
    for colour, (name, seconds) in zip(COLOURS, waits.items(), strict=False):
        longest_first = sorted(seconds, reverse=True)
        shares = [(place + 1) / len(seconds) for place in range(len(seconds))]
        axes.plot(longest_first, shares, color=colour, lw=1.8, label=name)
        axes.axvline(mean(seconds), color=colour, ls=":", lw=1.2)
        told.append(f"{name}: mean {mean(seconds):.3g} s, longest {longest_first[0]:.3g} s")
    axes.axhline(0.01, color=INK, ls="--", lw=0.8)
    axes.annotate(
        "one in a hundred", (1, 0.01), ha="right", va="bottom", color=INK, xycoords=("axes fraction", "data")
    )
    axes.set(yscale="log", xlabel="seconds (dotted: the mean)", ylabel="share that waits longer")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, "Lines, logarithmic downwards: the share of requests that waits longer. " + "; ".join(
        told
    ) + "."
