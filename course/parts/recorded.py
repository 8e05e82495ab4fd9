"""Pictures of what torch.compile records, and of when its first call is paid back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from autograder.measuring.units import as_time
from autograder.show import HERE, INK, LIMIT, RECORDED


def operations(graph: torch.fx.GraphModule) -> list[str]:
    """The names of the operations of a recorded graph, in their order."""
    nodes = [node for node in graph.graph.nodes if node.op in ("call_function", "call_method", "call_module")]
    return [node.target if isinstance(node.target, str) else node.target.__name__ for node in nodes]


def draw_pieces(recorded: Mapping[str, Sequence[Sequence[str]]]) -> tuple[Figure, str]:
    """Draw one row for each function: its graphs as frames with their operations; give the same in words."""
    widths = {
        name: sum(0.5 + sum(_width(one) for one in graph) for graph in graphs)
        for name, graphs in recorded.items()
    }
    figure = Figure(figsize=(8.5, 0.62 * len(recorded) + 0.2), dpi=110)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, 2.6 + max(widths.values()))
    axes.set_ylim(-len(recorded), 0.1)
    axes.axis("off")
    said = []
    for row, (name, graphs) in enumerate(recorded.items()):
        x, y = 2.4, -row - 0.5
        axes.text(x - 0.15, y, name, ha="right", va="center", fontsize=9.5, color=INK)
        for number, graph in enumerate(graphs):
            if number:
                axes.plot([x - 0.2] * 2, [y - 0.42, y + 0.42], color=RECORDED, lw=3)
            length = sum(map(_width, graph))
            axes.add_patch(
                FancyBboxPatch(
                    (x, y - 0.32), length + 0.1, 0.64, "round,pad=0.02", facecolor="#eef4f9", edgecolor=HERE
                )
            )
            for operation in graph:
                axes.text(
                    x + _width(operation) / 2 + 0.05, y, operation, ha="center", va="center", fontsize=9
                )
                x += _width(operation)
            x += 0.5
        said.append(f"{name}: " + ", then a break, then ".join(" ".join(graph) for graph in graphs))
    return figure, "Recorded graphs. " + "; ".join(said) + "."


def _width(operation: str) -> float:
    return 0.35 + 0.13 * len(operation)


def draw_payback(first_call: float, plain: float, compiled: float) -> tuple[Figure, str]:
    """Draw what so many calls take in all, without compiling and with it; give the same in words."""
    paid = first_call / (plain - compiled) if plain > compiled else None
    most = 10 * (paid or 1000)
    numbers = [most ** (step / 60) for step in range(61)]
    figure = Figure(figsize=(7, 3.2), dpi=110, layout="constrained")
    axes = figure.subplots()
    axes.loglog(numbers, [plain * number for number in numbers], color=HERE, lw=2, label="not compiled")
    with_first = [first_call + compiled * number for number in numbers]
    axes.loglog(numbers, with_first, color=RECORDED, lw=2, ls="--", label="compiled, with its first call")
    if paid:
        axes.axvline(paid, color=LIMIT, lw=1.2)
        axes.annotate(f"{paid:,.0f} calls", (paid, plain), (6, 4), textcoords="offset points", fontsize=9)
    axes.set(xlabel="calls", ylabel="seconds in all")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    meeting = f"The lines meet at {paid:,.0f} calls." if paid else "The lines do not meet."
    words = (
        f"Time in all over the number of calls: a call takes {as_time(plain)} not compiled, {as_time(compiled)} "
        f"compiled; the first compiled call takes {as_time(first_call)}. {meeting}"
    )
    return figure, words
