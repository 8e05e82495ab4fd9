"""A picture of one number in three floating-point types: its bits, and how far and how fine each type is."""

from __future__ import annotations

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from autograder.show import GUESS, HERE, INK, RECORDED

# Bits of the exponent; one more is the sign, and the others are the fraction.
EXPONENT = {torch.float32: 8, torch.float16: 5, torch.bfloat16: 8}
PARTS = (("sign", GUESS), ("exponent", RECORDED), ("fraction", HERE))


def bits_of(number: torch.Tensor) -> str:
    """The bits of a tensor with one floating-point number, the sign first."""
    size = torch.finfo(number.dtype).bits
    whole = number.view({16: torch.int16, 32: torch.int32}[size]).item()
    return format(whole % 2**size, f"0{size}b")


def draw_bits(value: float) -> tuple[Figure, str]:
    """``value`` in float32, float16 and bfloat16 with the bits that torch stores; and the same in words."""
    figure = Figure(figsize=(7.4, 4.7), dpi=110)
    figure.set_layout_engine("constrained")
    top, bottom = figure.subplots(2, 1, height_ratios=(3.1, 1.5))
    words = []
    top.set_xlim(-6.9, 32.2)
    top.set_ylim(-0.3, 6.3)
    top.axis("off")
    top.set_title(f"{value:g} in three types: the bits in memory", loc="left", fontsize=11)
    for row, dtype in enumerate(EXPONENT):
        name, base = str(dtype).removeprefix("torch."), 4.1 - 2.05 * row
        number = torch.tensor(value, dtype=dtype)
        bits, split = bits_of(number), 1 + EXPONENT[dtype]
        top.text(-6.9, base + 0.95, name, fontsize=11, weight="bold", color=INK, va="center")
        top.text(-6.9, base + 0.25, f"= {number.item():g}", fontsize=10, color=INK, va="center")
        for place, bit in enumerate(bits):
            _bit(top, place, base, bit, PARTS[(place >= 1) + (place >= split)][1])
        significant = len(bits) - split
        top.text(0.85, base + 1.55, "sign", ha="right", va="center", fontsize=9.5, color=INK)
        for left, right, text in (
            (1, split, f"exponent, {EXPONENT[dtype]}"),
            (split, len(bits), f"fraction, {significant}"),
        ):
            top.text((left + right) / 2, base + 1.55, text, ha="center", va="center", fontsize=9.5, color=INK)
        words.append(f"{name} stores {number.item():g} as {bits[0]} {bits[1:split]} {bits[split:]}.")
    top.plot([16, 16], [-0.25, 5.35], color=INK, lw=1.4, ls=(0, (4, 2)))
    top.text(16.3, 0.55, "← bfloat16: the upper half of float32", fontsize=10, color=INK, va="center")
    words.append("The 16 bits of bfloat16 are the upper half of those of float32.")
    words += _ranges(bottom)
    parts = "sign, exponent and fraction"
    return figure, f"The bits of {value:g} in three types, as {parts}. {' '.join(words)}"


def _bit(axes: Axes, left: float, bottom: float, bit: str, colour: str) -> None:
    axes.add_patch(Rectangle((left, bottom), 1, 1.2, facecolor=colour, alpha=0.35, edgecolor=INK, lw=0.9))
    axes.text(left + 0.5, bottom + 0.57, bit, ha="center", va="center", fontsize=11, color=INK)


def _ranges(axes: Axes) -> list[str]:
    """Bars from the smallest to the largest positive number of each type, on a logarithmic axis."""
    words = []
    axes.set_title(
        "How large a number may be, and how far the next one is (pale: fewer digits)", loc="left", fontsize=11
    )
    for row, dtype in enumerate(EXPONENT):
        kind, name = torch.finfo(dtype), str(dtype).removeprefix("torch.")
        sizes = kind.smallest_normal * kind.eps, kind.smallest_normal, kind.max
        low, normal, high = (math.log10(size) for size in sizes)
        step = f"1 in {round(1 / kind.eps):,}"
        axes.barh(row, normal - low, left=low, height=0.62, color=RECORDED, alpha=0.2)
        axes.barh(row, high - normal, left=normal, height=0.62, color=RECORDED, alpha=0.6)
        place, side = ((normal + high) / 2, "center") if high - normal > 20 else (high + 1, "left")
        axes.text(place, row, step, ha=side, va="center", fontsize=10, color=INK)
        words.append(
            f"{name} reaches from {sizes[1]:.0e} to {sizes[2]:.0e} with steps of {step}, "
            f"and with fewer digits down to {sizes[0]:.0e}."
        )
    axes.set_yticks(range(3), [str(dtype).removeprefix("torch.") for dtype in EXPONENT], fontsize=10)
    axes.set_ylim(2.5, -0.5)
    axes.set_xlim(-50, 42)
    ticks = range(-40, 41, 20)
    axes.set_xticks(ticks, [f"$10^{{{tick}}}$" if tick else "1" for tick in ticks])
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return words
