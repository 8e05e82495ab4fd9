"""Numbers of few bits: dynamic quantisation, products in a process of their own, sizes of files, drawings."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import timeit
import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from torch import nn

from autograder.show import GUESS, HERE, INK, RECORDED

COLOURS = (RECORDED, HERE, GUESS)
MARKS = ("o", "s", "^")


def dynamic(model: nn.Module, engine: str | None = None) -> nn.Module:
    """A copy whose Linear layers have int8 weights and make int8 of their inputs in each call.

    ``engine`` is one of ``torch.backends.quantized.supported_engines``, by default the one that torch takes.
    """
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = engine or before
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is deprecated
        copied = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    torch.backends.quantized.engine = before
    return copied


def has_vnni() -> bool:
    """Whether the processor has an instruction for products of int8 (VNNI or AMX), as far as torch can tell."""
    known = getattr(torch.cpu, "get_capabilities", dict)()
    return any(known.get(name) for name in ("avx512_vnni", "avx_vnni", "amx_int8"))


class Products(NamedTuple):
    """Milliseconds of a product of floats, of the same by oneDNN, of one of int8, and whether that is exact."""

    floats: float
    by_onednn: float
    ints: float
    exact: bool


def product_times(instructions: str | None, side: int = 768) -> Products:
    """What products take in a process of their own, because a process chooses its instructions once.

    ``instructions`` are the most that oneDNN may use there (``ONEDNN_MAX_CPU_ISA``), None for all.
    """
    limit = {"ONEDNN_MAX_CPU_ISA": instructions} if instructions else {}
    command = [sys.executable, __file__, str(side)]
    told = subprocess.run(command, env=os.environ | limit, capture_output=True, text=True, check=True).stdout
    *times, exact = told.split()[-4:]
    return Products(*map(float, times), exact=exact == "True")


def _measure_products(side: int) -> None:
    torch.set_num_threads(1)
    a, b = torch.randint(-127, 128, (2, side, side), dtype=torch.int8)
    x, y = a.float(), b.float()
    packed = (x.to_mkldnn(), y.to_mkldnn()) if torch.backends.mkldnn.is_available() else (x, y)
    calls = (lambda: x @ y, lambda: F.linear(*packed), lambda: torch._int_mm(a, b))
    times = [1e3 * min(timeit.repeat(call, number=1, repeat=9)) for call in calls]
    print(*times, torch.equal(torch._int_mm(a, b).double(), a.double() @ b.double()))


def bytes_of(kept: Mapping[str, object]) -> int:
    """The size of the file that torch.save writes."""
    file = io.BytesIO()
    torch.save(kept, file)
    return file.tell()


def draw_losses(
    losses: Mapping[str, Mapping[int, float]], unrounded: float, bits: str = "bits of a weight"
) -> tuple[Figure, str]:
    """The loss of a model against the bits that it keeps, a line for each way, with that of its floats."""
    figure = Figure(figsize=(6.6, 3.4), dpi=110, layout="constrained")
    axes = figure.subplots()
    told = []
    for colour, mark, (name, line) in zip(COLOURS, MARKS, losses.items(), strict=False):
        axes.plot(list(line), list(line.values()), color=colour, marker=mark, ms=6, lw=1.6, label=name)
        told.append(f"{name}: " + ", ".join(f"{number} bits {value:.3g}" for number, value in line.items()))
    axes.axhline(unrounded, color=INK, ls="--", lw=1)
    axes.annotate(
        "float32", (0.99, unrounded), xycoords=("axes fraction", "data"), ha="right", va="bottom", color=INK
    )
    axes.set(yscale="log", xlabel=bits, ylabel="loss (logarithmic)")
    numbers = sorted({number for line in losses.values() for number in line})
    axes.set_xticks(numbers)
    axes.invert_xaxis()
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, f"The loss against the bits; {unrounded:.3g} with float32. " + "; ".join(told) + "."


def draw_steps(kinds: Mapping[str, Sequence[float]]) -> tuple[Figure, str]:
    """All positive numbers of some formats, each a tick on a logarithmic axis."""
    figure = Figure(figsize=(7.4, 0.6 + 0.75 * len(kinds)), dpi=110, layout="constrained")
    axes = figure.subplots()
    told = []
    for row, (colour, (name, numbers)) in enumerate(zip(COLOURS, kinds.items(), strict=False)):
        axes.vlines(numbers, row - 0.36, row + 0.36, color=colour, lw=0.8)
        told.append(f"{name}: {len(numbers)} positive numbers from {min(numbers):.2g} to {max(numbers):g}")
    axes.set_yticks(range(len(kinds)), list(kinds))
    axes.set(xscale="log", ylim=(len(kinds) - 0.5, -0.5))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure, "Ticks on a logarithmic axis. " + "; ".join(told) + "."


if __name__ == "__main__":
    _measure_products(int(sys.argv[1]))
