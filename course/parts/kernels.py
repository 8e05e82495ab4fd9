"""Drawings of the tiles that kernels work on; and what it costs to compile C++ that knows tensors."""

from __future__ import annotations

import importlib
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from autograder.show import HERE, INK, LIMIT, RECORDED

COLOURS = (HERE, RECORDED, LIMIT, "#CC79A7")


def interpreter_fits() -> bool:
    """Whether Triton's interpreter can count a loop with this NumPy.

    Older ones take an array of one number for a number, which NumPy refuses from 2.4 on.
    """
    source = Path(importlib.import_module("triton.runtime.interpreter").__file__).read_text(encoding="utf-8")
    try:
        int(np.ones(1))
    except TypeError:
        return "int(self.handle.data)" not in source
    return True


def draw_tiles(numbers: int, tile: int) -> tuple[Figure, str]:
    """A row of numbers under the tiles of the programs that work on it; and the same in words."""
    programs = -(-numbers // tile)
    figure = Figure(figsize=(8.4, 2.1), dpi=110)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-2.6, programs * tile + 0.3)
    axes.set_ylim(-0.95, 2.5)
    axes.axis("off")
    for place in range(programs * tile):
        colour, inside = COLOURS[place // tile % len(COLOURS)], place < numbers
        look = {"fc": colour, "alpha": 0.85} if inside else {"fc": "white", "hatch": "////", "ec": colour}
        axes.add_patch(Rectangle((place + 0.04, 0.5), 0.92, 0.9, **look))
        axes.text(
            place + 0.5,
            0.95,
            str(place),
            ha="center",
            va="center",
            fontsize=11,
            color="white" if inside else INK,
            bbox=None if inside else {"fc": "white", "ec": "none", "pad": 1.5},
        )
        axes.text(
            place + 0.5, 0.2, "yes" if inside else "no", ha="center", va="center", fontsize=9, color=INK
        )
    for program in range(programs):
        left, right = program * tile + 0.08, (program + 1) * tile - 0.08
        axes.plot([left, left, right, right], [1.6, 1.72, 1.72, 1.6], color=INK, lw=1.2)
        axes.text(
            (left + right) / 2, 1.98, f"program {program}", ha="center", va="center", fontsize=10, color=INK
        )
    for y, name in ((0.95, "place"), (0.2, "mask")):
        axes.text(-0.25, y, name, ha="right", va="center", fontsize=10, color=INK)
    axes.annotate(
        f"end: {numbers} numbers",
        (numbers, 0.42),
        (numbers, -0.65),
        ha="center",
        va="center",
        fontsize=9.5,
        color=INK,
        arrowprops={"arrowstyle": "-|>", "color": INK},
    )
    return figure, (
        f"{numbers} numbers in a row, under {programs} programs with {tile} places each. The last "
        f"{programs * tile - numbers} places of the last program lie behind the end, and the mask says no there."
    )


def draw_product(size: int, tiles: Sequence[int], row: int, column: int) -> tuple[Figure, str]:
    """What one program of a matrix product loads, for each size of tile; and the same in words.

    The tile drawn is the one that holds the result at ``row`` and ``column``.
    """
    figure = Figure(figsize=(8.4, 2.2), dpi=110)
    told = []
    for number, tile in enumerate(tiles):
        axes = figure.add_axes((number / len(tiles), 0, 1 / len(tiles), 1))
        axes.axis("off")
        axes.set_aspect("equal")
        axes.set_xlim(-1, 3 * size + 5)
        axes.set_ylim(-2.4, size + 2.0)
        top, left = row // tile * tile, column // tile * tile
        _grid(axes, 0, size, "left", Rectangle((0, size - top - tile), size, tile, color=HERE, alpha=0.75))
        _grid(axes, size + 2, size, "right", Rectangle((size + 2 + left, 0), tile, size, color=RECORDED))
        place = Rectangle((2 * size + 4 + left, size - top - tile), tile, tile, color=LIMIT, alpha=0.85)
        _grid(axes, 2 * size + 4, size, "result", place)
        programs = (size // tile) ** 2
        loaded = programs * 2 * tile * size
        axes.text(
            1.5 * size + 2,
            -1.5,
            f"tile {tile} × {tile}: {programs} programs load {loaded:,} numbers",
            ha="center",
            va="center",
            fontsize=9.5,
            color=INK,
        )
        told.append(
            f"with tiles of {tile} × {tile}, a program loads {tile} rows of the left matrix and {tile} columns of "
            f"the right one; {programs} programs load {loaded:,} numbers"
        )
    return figure, f"A product of two matrices of {size} × {size}: " + "; ".join(told) + "."


def _grid(axes: Axes, x: float, size: int, name: str, marked: Rectangle) -> None:
    axes.add_patch(marked)
    for line in range(size + 1):
        axes.plot([x, x + size], [line, line], color=INK, lw=0.4)
        axes.plot([x + line, x + line], [0, size], color=INK, lw=0.4)
    axes.text(x + size / 2, size + 1.0, name, ha="center", va="center", fontsize=10, color=INK)


def lines_to_read(command: Sequence[str], headers: Sequence[str]) -> int | None:
    """The lines of C++ that a compiler reads for these headers; None where it does not find them all."""
    root = Path(torch.__file__).parent / "include"
    folders = [root, root / "torch/csrc/api/include", sysconfig.get_paths()["include"]]
    text = "\n".join(f"#include <{header}>" for header in headers)
    line = [*command, "-std=c++20", "-E", "-P", "-x", "c++", "-", *(f"-I{folder}" for folder in folders)]
    done = subprocess.run(line, input=text, capture_output=True, text=True)
    return done.stdout.count("\n") if done.returncode == 0 else None


def seconds_of_load_inline(folder: str) -> float:
    """How long load_inline takes for a function of one line. It needs ninja."""
    from torch.utils.cpp_extension import load_inline

    place = Path(folder) / "load_inline"
    place.mkdir(exist_ok=True)
    source = "torch::Tensor twice(torch::Tensor x) { return x * 2; }"
    begin = time.perf_counter()
    load_inline("twice", source, functions=["twice"], build_directory=str(place))
    return time.perf_counter() - begin
