"""What calls cost beside what they compute: pictures, gaps in a profile, and a tape that repeats operations."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from torch.autograd import DeviceType
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from autograder.measuring.units import as_time
from autograder.show import HERE, INK, LIMIT, RECORDED

Spans = list[tuple[str, float, float]]  # name, begin and end in microseconds
WAITING = "#E8E8E8"


def draw_crossing(taken: Mapping[int, float]) -> tuple[Figure, str]:
    """Draw what one call takes over the size of its tensors: a flat part and a steep one; give it in words, too.

    ``taken`` has seconds for sizes; the smallest says what a call costs, the second largest what a number does.
    """
    sizes = sorted(taken)
    fixed, each = taken[sizes[0]], (taken[sizes[-2]] - taken[sizes[0]]) / sizes[-2]
    crossing = fixed / each
    figure = Figure(figsize=(7.5, 3.4), dpi=110, layout="constrained")
    axes = figure.subplots()
    axes.axvspan(sizes[0] / 2, crossing, color="#fdf3df", zorder=0)
    axes.axvspan(crossing, sizes[-1] * 2, color="#eef4f9", zorder=0)
    axes.axhline(fixed, color=RECORDED, lw=1.6, ls="--")
    reach = [crossing / 30, sizes[-1] * 2]
    axes.plot(reach, [each * size for size in reach], color=LIMIT, lw=1.6, ls="--")
    axes.plot(sizes, [taken[size] for size in sizes], "o-", color=HERE, lw=2, ms=6)
    axes.set(xscale="log", yscale="log", xlabel="numbers in each tensor", ylabel="seconds for one call")
    low, high = fixed / 5, max(taken.values()) * 2
    axes.set_xlim(sizes[0] / 2, sizes[-1] * 2)
    axes.set_ylim(low, high)
    axes.text(sizes[0], fixed / 1.15, f"the call: {as_time(fixed)}", va="top", color="#8a5f00", fontsize=9.5)
    axes.annotate(
        f"the numbers: {each * 1e9:.2g} ns each",
        (crossing / 5, fixed / 5),
        (-6, 4),
        textcoords="offset points",
        ha="right",
        color="#00664a",
        fontsize=9.5,
    )
    axes.axvline(crossing, color=INK, lw=1)
    axes.annotate(
        f"both cost the same:\n{crossing:,.0f} numbers",
        (crossing, high),
        (-6, -6),
        textcoords="offset points",
        ha="right",
        va="top",
        color=INK,
        fontsize=9.5,
    )
    axes.spines[["top", "right"]].set_visible(False)
    points = "; ".join(f"{size:,}: {as_time(taken[size])}" for size in sizes)
    return figure, (
        f"Time of one call over the numbers in a tensor, both on logarithmic axes: {points}. The line is flat at "
        f"first and steep later; the two parts are equal at {crossing:,.0f} numbers."
    )


def spans_of(profiled: torch.profiler.profile, device: str = "cpu") -> Spans:
    """What ran when, from the first on: operations that no other one called, or a GPU's kernels."""
    wanted = DeviceType.CPU if device == "cpu" else DeviceType.CUDA
    events = [
        event
        for event in profiled.events()
        if event.device_type == wanted
        and (device != "cpu" or (event.cpu_parent is None and event.name.startswith("aten::")))
    ]
    events.sort(key=lambda event: event.time_range.start)
    start = events[0].time_range.start if events else 0
    return [
        (event.name.removeprefix("aten::"), event.time_range.start - start, event.time_range.end - start)
        for event in events
    ]


def busy(spans: Spans) -> float:
    """The share of the time from the first begin to the last end in which something ran."""
    if not spans:
        return 0.0
    total, until = 0.0, spans[0][1]
    for _, begin, end in sorted(spans, key=lambda span: span[1]):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total / (until - spans[0][1])


def draw_gaps(traces: Mapping[str, Spans], number: int = 12) -> tuple[Figure, str]:
    """Draw ``number`` operations from the middle of each trace, with the gaps between them; in words, too."""
    figure = Figure(figsize=(7.5, 1.05 * len(traces) + 0.75), dpi=110, layout="constrained")
    told = []
    for axes, (name, spans) in zip(figure.subplots(len(traces), 1), traces.items(), strict=True):
        middle = spans[len(spans) // 2 : len(spans) // 2 + number]
        start, end = middle[0][1], middle[-1][2]
        axes.barh(0, end - start, left=0, height=0.8, color=WAITING)
        for operation, begin, until in middle:
            axes.barh(0, until - begin, left=begin - start, height=0.8, color=HERE, edgecolor="white", lw=0.4)
            if until - begin > (end - start) * 0.0095 * len(operation):
                axes.text(
                    (begin + until) / 2 - start,
                    0,
                    operation,
                    ha="center",
                    va="center",
                    color="white",
                    fontsize=8.5,
                )
        said = f"{busy(spans):.0%} of the time in operations"
        axes.set_title(f"{name}: {said}", fontsize=9.5, loc="left", color=INK, pad=3)
        axes.set_yticks([])
        axes.set_xlim(0, end - start)
        axes.tick_params(axis="x", labelsize=8.5)
        axes.spines[["top", "right", "left"]].set_visible(False)
        told.append(f"{name}: {said}; {len(middle)} operations in {end - start:.0f} µs")
    figure.axes[-1].set_xlabel("microseconds (each row has its own scale)", fontsize=9)
    patches = [Patch(color=HERE, label="an operation runs"), Patch(color=WAITING, label="none does")]
    figure.legend(handles=patches, loc="outside upper right", ncols=2, fontsize=8.5, frameon=False)
    return figure, f"{number} operations of each profile, with gaps between them. " + "; ".join(told) + "."


def refusal(call: Callable[[], object]) -> str:
    """The first sentence of torch's error for a call that it must refuse."""
    try:
        call()
    except RuntimeError as error:
        return str(error).split(". ")[0]
    raise AssertionError("torch should refuse this")


def page_faults(call: Callable[..., object], *inputs: object, times: int = 10) -> float:
    """How often in one call the system had to hand out memory; NaN where it does not count that (Windows)."""
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:
        return float("nan")
    call(*inputs)
    before = getrusage(RUSAGE_SELF).ru_minflt
    for _ in range(times):
        call(*inputs)
    return (getrusage(RUSAGE_SELF).ru_minflt - before) / times


IN_A_NEW_PROCESS = """
import time, timeit, torch
from parts.overhead import page_faults
torch.set_num_threads(1)
parameters = [torch.nn.Parameter(torch.ones(262_144)) for _ in range(16)]
for parameter in parameters:
    parameter.grad = torch.ones(262_144)
for when in "in a new process", "after a tensor of 30 MB":
    for name, foreach in ("for-loop", False), ("foreach", True):
        step = torch.optim.RMSprop(parameters, lr=1e-6, foreach=foreach).step
        faults = page_faults(step)
        seconds = sorted(timeit.repeat(step, timer=time.process_time, number=1, repeat=9))[4]
        print(f"{when:23} {name:8} {1e3 * seconds:5.1f} ms, {faults:,.0f} page faults in a step")
    torch.ones(7_500_000)
"""


def rmsprop_anew() -> str:
    """What a step of 16 parameters takes before and after the process has freed a large tensor; as a table."""
    return subprocess.run(
        [sys.executable, "-c", IN_A_NEW_PROCESS],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.rstrip()


class Tape(TorchDispatchMode):
    """Records operations while its block runs; ``replay`` repeats them, on the same tensors.

    Two of a CUDA graph's rules, on any device, without its speed: each operation reads from and writes to the
    memory that it had at the recording, and nothing else of the block is repeated. Unlike a CUDA graph it computes
    while it records, keeps all tensors alive, and lets most of what waits for the device pass.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # do not load the compiler

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[Any, Sequence[Any], Mapping[str, Any], Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("somebody asks for a value while operations are recorded")
        result = func(*args, **(kwargs or {}))
        self.steps.append((func, args, kwargs or {}, result))
        return result

    @torch.no_grad()
    def replay(self) -> None:
        for func, args, kwargs, result in self.steps:
            if func.is_view:
                continue  # another view of the same memory
            for old, new in zip(tree_leaves(result), tree_leaves(func(*args, **kwargs)), strict=True):
                if isinstance(old, torch.Tensor) and old is not new:
                    old.copy_(new)
