"""The graph that autograd records: its nodes, what they keep, and a picture of both."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from autograder.measuring.units import size
from autograder.show import HERE, INK, LIMIT, RECORDED

Node = torch.autograd.graph.Node
GREY = "#777777"


def nodes(tensor: torch.Tensor) -> list[Node]:
    """All nodes of the graph behind a tensor, each once."""
    waiting, found = [tensor.grad_fn], []
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.append(node)
            waiting += [following for following, _ in node.next_functions]
    return found


def name_of(node: Node) -> str:
    """The name of a node, as short as possible."""
    return node.name().removeprefix("torch::autograd::")


def kept_by(node: Node) -> dict[str, torch.Tensor]:
    """The tensors that a node keeps for the backward pass, by the name of what they are to its operation."""
    fields = {field: getattr(node, field) for field in dir(node) if field.startswith("_saved_")}
    return {
        field.removeprefix("_saved_"): value
        for field, value in fields.items()
        if isinstance(value, torch.Tensor)
    }


def draw_graph(given: Mapping[str, torch.Tensor], made: Mapping[str, torch.Tensor]) -> tuple[Figure, str]:
    """Draw the graph behind the last tensor that was made, and what it keeps; give the same in words, too.

    ``given`` are the tensors that were there before, ``made`` the results of all steps, each by its name. The
    nodes must be one chain, to which leaves are attached.
    """
    steps = {tensor.grad_fn: name for name, tensor in made.items()}
    result = list(made.values())[-1]
    chain = [node for node in nodes(result) if not hasattr(node, "variable")]
    rows = {node: -1.1 * place for place, node in enumerate(chain)}
    known = {tensor.data_ptr(): name for name, tensor in (given | made).items()}
    tensors = {tensor.data_ptr(): tensor for node in chain for tensor in kept_by(node).values()}
    users = {
        key: [node for node in chain if any(key == tensor.data_ptr() for tensor in kept_by(node).values())]
        for key in tensors
    }
    places = _apart({key: sum(rows[node] for node in used) / len(used) for key, used in users.items()})

    figure = Figure(figsize=(7.2, 0.7 * len(chain) + 1.1), dpi=110)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, 10)
    axes.set_ylim(rows[chain[-1]] - 0.6, 1.1)
    axes.axis("off")
    said = []
    for x, heading in (
        (1.45, "leaves"),
        (4.75, "graph, from the loss back"),
        (8.35, "tensors that it keeps"),
    ):
        axes.text(x, 0.75, heading, ha="center", va="center", fontsize=11, weight="bold", color=INK)
    for node, y in rows.items():
        _box(axes, 4.75, y, 2.6, f"{name_of(node)}\nof {steps[node]}", HERE)
        for following, _ in node.next_functions:
            if following in rows:
                _arrow(axes, (4.75, y - 0.35), (4.75, rows[following] + 0.36))
            elif following is not None:
                leaf = known[following.variable.data_ptr()]
                _box(axes, 1.45, y, 2.5, f"{name_of(following)}\nadds to {leaf}.grad", LIMIT)
                _arrow(axes, (3.4, y), (2.78, y))
                said.append(f"that of {steps[node]} leads to {name_of(following)} of {leaf}")
    for key, used in users.items():
        shape = " × ".join(map(str, tensors[key].shape))
        old = known[key] in given
        weight = "was there before" if old else f"new: {size(tensors[key].untyped_storage().nbytes())}"
        _box(axes, 8.35, places[key], 2.8, f"{known[key]}, {shape}\n{weight}", GREY if old else RECORDED)
        for node in used:
            axes.plot([6.08, 6.92], [rows[node], places[key]], color=GREY, lw=1.2, ls=(0, (3, 2)), zorder=1)
        by = " and ".join(steps[node] for node in used)
        said.append(f"{known[key]} ({shape}, {weight}) is kept by that of {by}")
    names = ", ".join(f"{name_of(node)} of {steps[node]}" for node in chain)
    return figure, f"The nodes of the graph, from the loss back: {names}. Of these, {'; '.join(said)}."


def _apart(wanted: dict[int, float], least: float = 0.86) -> dict[int, float]:
    """The same heights, moved down where two are too near to each other."""
    places: dict[int, float] = {}
    last = float("inf")
    for key, y in sorted(wanted.items(), key=lambda item: -item[1]):
        last = places[key] = min(y, last - least)
    return places


def _box(axes: Axes, x: float, y: float, width: float, text: str, colour: str) -> None:
    shape = FancyBboxPatch(
        (x - width / 2, y - 0.3),
        width,
        0.6,
        boxstyle="round,pad=0.03,rounding_size=0.1",
        facecolor="white",
        edgecolor=colour,
        lw=2,
        zorder=2,
    )
    axes.add_patch(shape)
    axes.text(x, y, text, ha="center", va="center", fontsize=9.5, color=INK, zorder=3, linespacing=1.25)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.4}, zorder=1)
