"""Where a process waits: neighbours that keep the processor busy, traces, and the pictures of chapter 00."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from autograder.show import HERE, INK, RECORDED

Spans = list[tuple[float, float]]  # begin and end, in seconds

NEIGHBOUR = """
import time
end = time.perf_counter() + 30
while time.perf_counter() < end:
    pause = time.perf_counter() + 0.02
    while time.perf_counter() < pause:
        pass
    time.sleep(0.01)
"""
COPIER = """
import time
here, there = (memoryview(bytearray(b"1") * 64_000_000) for _ in range(2))
end = time.perf_counter() + 30
while time.perf_counter() < end:
    here[:] = there
"""
WAITING, OTHER = "#E8E8E8", "#BBBBBB"


@contextmanager
def neighbours(copying: bool = False) -> Iterator[None]:
    """Other programs on all cores: each computes for 20 ms, sleeps for 10 ms, and begins again.

    With ``copying``, each moves 64 MB to and fro, without a pause.
    """
    number = min(2 * (os.cpu_count() or 1), 16)
    code = COPIER if copying else NEIGHBOUR
    others = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(number)]
    time.sleep(0.3)
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@dataclass
class QueueTrace:
    """A queue of work, as it was: all times in seconds, from its beginning on.

    Python made ``launches`` and waited from the last one until ``ended``. The worker did ``other`` work
    before, then its ``kernels``; ``events`` are the moments that it noted before and after them.
    """

    launches: Spans = field(default_factory=list)
    kernels: Spans = field(default_factory=list)
    other: Spans = field(default_factory=list)
    events: tuple[float, float] = (0.0, 0.0)
    ended: float = 0.0

    @property
    def clocks(self) -> dict[str, float]:
        """Milliseconds on three clocks: until all is launched, until all has ended, between the events."""
        launched = self.launches[-1][1]
        between = self.events[1] - self.events[0]
        return {"launched": 1e3 * launched, "ended": 1e3 * self.ended, "events": 1e3 * between}


def launch_20(worker: ThreadPoolExecutor, kernel: float, head_start: float = 0.0) -> QueueTrace:
    """Launch 20 naps of ``kernel`` seconds, behind ``head_start`` seconds of other work; who did what when?"""
    other = [worker.submit(nap, head_start)] if head_start else []
    start = time.perf_counter()
    before = worker.submit(time.perf_counter)  # an event: the worker notes the time when it gets there
    launches, kernels = [], []
    for _ in range(20):
        launches.append(nap(0.002))
        kernels.append(worker.submit(nap, kernel))
    after = worker.submit(time.perf_counter)
    events = before.result() - start, after.result() - start  # synchronize: wait for the last one
    ended = time.perf_counter() - start
    lanes = launches, [kernel.result() for kernel in kernels], [work.result() for work in other]
    done, ran, before_it = ([(begin - start, end - start) for begin, end in lane] for lane in lanes)
    return QueueTrace(done, ran, before_it, events, ended)


def nap(seconds: float) -> tuple[float, float]:
    begin = time.perf_counter()
    time.sleep(seconds)
    return begin, time.perf_counter()


def draw_queue(traces: Mapping[str, QueueTrace]) -> tuple[Figure, str]:
    """Who works and who waits in each trace, and what the three clocks measure; the picture in words, too."""
    figure = Figure(figsize=(7.5, 1.75 * len(traces) + 0.6), dpi=110)
    figure.set_layout_engine("constrained", hspace=0.06)
    all_axes = figure.subplots(len(traces), 1, sharex=True)
    longest = 1e3 * max(trace.ended for trace in traces.values())
    told = []
    for axes, (name, trace) in zip(all_axes, traces.items(), strict=True):
        launched, first, last = trace.launches[-1][1], *trace.events
        _bars(axes, 1, [(0, trace.ended)], WAITING)
        _bars(axes, 1, trace.launches, HERE)
        _bars(axes, 0, [(0, trace.ended)], WAITING)
        _bars(axes, 0, trace.other, OTHER)
        _bars(axes, 0, trace.kernels, RECORDED)
        for y, (clock, (begin, end)) in zip(
            (-1.0, -1.75, -2.5),
            {"launched": (0, launched), "ended": (0, trace.ended), "events": (first, last)}.items(),
            strict=True,
        ):
            _measure(axes, y, 1e3 * begin, 1e3 * end, f"{clock} {1e3 * (end - begin):.0f} ms", longest)
        axes.set_title(name, fontsize=9.5, loc="left", color=INK, pad=3)
        _lanes(axes, {1: "Python", 0: "worker"}, (-3.0, 1.6))
        busy = sum(end - begin for begin, end in trace.kernels)
        told.append(
            f"{name}: Python launches for {1e3 * launched:.0f} ms, then waits "
            f"{1e3 * (trace.ended - launched):.0f} ms; between the events the worker is busy for "
            f"{1e3 * busy:.0f} of {1e3 * (last - first):.0f} ms"
        )
    all_axes[-1].set_xlabel("milliseconds", fontsize=9)
    all_axes[-1].set_xlim(-0.01 * longest, 1.17 * longest)
    _legend(figure, {"launches": HERE, "kernels": RECORDED, "other work": OTHER, "waits": WAITING})
    return figure, "Two lanes, Python and its worker, for each setting. " + "; ".join(told) + "."


Both = tuple[float, float]  # seconds on the wall and on the CPU clock


def draw_pairs(pairs: Sequence[tuple[Both, Both]]) -> tuple[Figure, str]:
    """Times of pairs of blocks of equal functions, and their ratios; the picture in words, too."""
    figure = Figure(figsize=(7.5, 3.4), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    for side, (name, colour, marker) in enumerate([("A", HERE, "o"), ("B", RECORDED, "^")]):
        left.plot([pair[side][0] * 1e6 for pair in pairs], marker, color=colour, ms=5, label=f"{name}, wall")
    left.set(xlabel="pair", ylabel="µs per call, wall clock", yscale="log", title="Times of equal functions")
    ratios = {
        clock: sorted(a[place] / b[place] for a, b in pairs) for place, clock in enumerate(("wall", "CPU"))
    }
    for (clock, values), colour in zip(ratios.items(), ("#999999", HERE), strict=True):
        right.plot(values, ".-", color=colour, label=f"{clock} clock")
    right.axhline(1, color=INK, lw=1)
    right.set(xlabel="pair, sorted by ratio", ylabel="ratio A / B", yscale="log", title="Ratios within pairs")
    for axes in (left, right):
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(NullLocator())
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=8.5, frameon=False)
        for edge in ("top", "right"):
            axes.spines[edge].set_visible(False)
    told = "; ".join(
        f"{clock} ratios from {values[0]:.2f} to {values[-1]:.2f}, median {median(values):.2f}"
        for clock, values in ratios.items()
    )
    return figure, f"Times and ratios of {len(pairs)} pairs: {told}."


def _bars(axes: Axes, y: float, spans: Spans, colour: str) -> None:
    lengths = [(1e3 * begin, 1e3 * (end - begin)) for begin, end in spans]
    axes.broken_barh(lengths, (y - 0.36, 0.72), facecolors=colour, edgecolor="white", linewidth=0.4)


def _measure(axes: Axes, y: float, begin: float, end: float, text: str, longest: float) -> None:
    axes.annotate(
        "", (end, y), (begin, y), arrowprops={"arrowstyle": "|-|,widthA=0.2,widthB=0.2", "color": INK}
    )
    axes.text(end + 0.012 * longest, y, text, va="center", fontsize=8.5, color=INK)


def _lanes(axes: Axes, names: Mapping[int, str], limits: tuple[float, float]) -> None:
    axes.set_yticks(list(names), list(names.values()), fontsize=9)
    axes.set_ylim(*limits)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _legend(figure: Figure, colours: Mapping[str, str]) -> None:
    patches = [Patch(color=colour, label=name) for name, colour in colours.items()]
    figure.legend(handles=patches, loc="outside upper right", ncols=len(patches), fontsize=8.5, frameon=False)
