"""A roofline: measured points under what memory can feed and what the arithmetic can do."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from autograder.show import HERE, INK, RECORDED

Point = tuple[float, float, str]  # operations per byte, operations per second, a name


def draw_roofline(
    bandwidth: float, peak: float, products: Sequence[Point], others: Sequence[Point]
) -> tuple[Figure, str]:
    """The roof (bytes and operations per second) with two groups of points under it, and the same in words."""
    ridge = peak / bandwidth
    points = [*products, *others]
    ends = min(0.5 * x for x, _, _ in points), max(2 * ridge, *(2 * x for x, _, _ in points))
    figure = Figure(figsize=(7.4, 3.8), dpi=110, layout="constrained")
    axes = figure.subplots()
    roof = [ends[0] * bandwidth / 1e9, peak / 1e9, peak / 1e9]
    axes.plot([ends[0], ridge, ends[1]], roof, "-", color=INK, lw=2)
    axes.axvline(ridge, color="#999999", lw=1, ls=":")
    for x, side, text in (
        (ridge / 1.15, "right", "memory is the limit"),
        (ridge * 1.15, "left", "arithmetic is the limit"),
    ):
        axes.annotate(text, (x, peak * 1.25 / 1e9), ha=side, fontsize=9.5, color=INK)
    for group, marker, colour in ((products, "o", HERE), (others, "s", RECORDED)):
        axes.plot([x for x, _, _ in group], [y / 1e9 for _, y, _ in group], marker, color=colour, ms=7)
        for x, y, name in group:
            axes.annotate(name, (x, y / 1e9), (6, -12), textcoords="offset points", fontsize=9, color=INK)
    axes.set(
        xscale="log",
        yscale="log",
        xlim=ends,
        ylim=(min(y for _, y, _ in points) / 3e9, peak * 2.4 / 1e9),
        xlabel="operations per byte (logarithmic)",
        ylabel="billion operations per second",
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.spines[["top", "right"]].set_visible(False)
    told = "; ".join(f"{name}: {x:.2g} per byte, {y / 1e9:.1f} billion per second" for x, y, name in points)
    return figure, (
        f"Roofline with two logarithmic axes. The roof rises to {peak / 1e9:.0f} billion operations per second "
        f"at {ridge:.1f} operations per byte, then stays flat. Points under it: {told}."
    )
