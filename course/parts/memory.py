"""What lies in memory while a training step runs: each tensor's birth and death, and a picture of them."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from autograder.show import GUESS, HERE, INK, LIMIT, RECORDED

OTHER = "#BBBBBB"
COLOURS = {
    "weights": INK,
    "optimiser state": GUESS,
    "gradients": LIMIT,
    "activations": RECORDED,
    "short-lived": HERE,
}


@dataclass
class Life:
    """One piece of memory: its size, the operation that made it, and the one after which it was gone."""

    size: int
    born: int
    died: int | None = None
    kind: str = "short-lived"


class Watch(TorchDispatchMode):
    """Notes the life of all memory that operations make; what was there before counts as ``there``."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init__(self, **there: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self.operations = 0
        self.lives: list[Life] = []
        self.phases: list[tuple[str, int]] = []
        self.there = {kind: 0 for kind in there}
        self._known: dict[int, Life | None] = {}
        for kind, tensors in there.items():
            for storage in {one.untyped_storage()._cdata: one.untyped_storage() for one in tensors}.values():
                self.there[kind] += storage.nbytes()
                self._know(storage, None)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for tensor in _tensors((args, kwargs)):
            self._know(tensor.untyped_storage(), None)
        result = func(*args, **(kwargs or {}))
        self.operations += 1
        for tensor in _tensors(result):
            storage = tensor.untyped_storage()
            if storage._cdata not in self._known:
                self.lives.append(Life(storage.nbytes(), self.operations))
                self._know(storage, self.lives[-1])
        return result

    def name(self, kind: str, tensors: Iterable[torch.Tensor]) -> None:
        """Say what the memory of these tensors is."""
        for tensor in tensors:
            life = self._known.get(tensor.untyped_storage()._cdata)
            if life:
                life.kind = kind

    def phase(self, name: str, kept: str | None = None) -> None:
        """Say that a phase ends here, and what all that it leaves behind is."""
        self.phases.append((name, self.operations))
        for life in self.lives:
            if kept and life.died is None and life.kind == "short-lived":
                life.kind = kept

    def alive(self, kind: str) -> list[int]:
        """The bytes of a kind after each operation, from before the first to after the last."""
        changes = [0] * (self.operations + 2)
        for life in self.lives:
            if life.kind == kind:
                changes[life.born] += life.size
                # What a step throws away at its end has no operation after it.
                changes[self.operations + 1 if life.died is None else max(life.died, life.born) + 1] -= (
                    life.size
                )
        total, after = self.there.get(kind, 0), []
        for change in changes[:-1]:
            total += change
            after.append(total)
        return after

    def peak(self) -> int:
        """The most bytes at once, with those that were there before."""
        return max(self._sums())

    def peak_of(self, phase: str) -> int:
        """The most bytes at once during one phase."""
        ends = [0, *(end for _, end in self.phases)]
        number = [name for name, _ in self.phases].index(phase)
        return max(self._sums()[ends[number] + 1 : ends[number + 1] + 1])

    def _sums(self) -> list[int]:
        """The bytes of all kinds after each operation."""
        return list(map(sum, zip(*map(self.alive, self.kinds()), strict=True)))

    def kinds(self) -> list[str]:
        """All kinds that there are, in the order of the picture."""
        found = {*self.there, *(life.kind for life in self.lives)}
        return [*(kind for kind in COLOURS if kind in found), *sorted(found - set(COLOURS))]

    def _know(self, storage: torch.UntypedStorage, life: Life | None) -> None:
        key = storage._cdata
        if key not in self._known:
            self._known[key] = life
            weakref.finalize(storage, self._gone, key)

    def _gone(self, key: int) -> None:
        life = self._known.pop(key, None)
        if life:
            life.died = self.operations


def _tensors(tree: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def draw_steps(watches: Mapping[str, Watch]) -> tuple[Figure, str]:
    """Draw what lies in memory after each operation, one panel for each watch; give the same in words, too."""
    figure = Figure(figsize=(8.4, 3.6), dpi=110)
    figure.set_layout_engine("constrained")
    panels: Sequence[Axes] = figure.subplots(1, len(watches), squeeze=False, sharey=True)[0]
    highest = max(watch.peak() for watch in watches.values()) / 1e6
    said = []
    for axes, (title, watch) in zip(panels, watches.items(), strict=True):
        kinds = watch.kinds()
        rows = [[size / 1e6 for size in watch.alive(kind)] for kind in kinds]
        axes.stackplot(
            _places(watch),
            *rows,
            colors=[COLOURS.get(kind, OTHER) for kind in kinds],
            labels=kinds,
            step="post",
            lw=0,
        )
        top = watch.peak() / 1e6
        axes.set_ylim(0, 1.16 * highest)
        axes.set_xlim(0, len(watch.phases))
        axes.set_xticks([])
        parts = []
        for number, (name, _) in enumerate(watch.phases):
            axes.axvline(number + 1, color=INK, lw=0.8, ls=(0, (3, 2)))
            axes.text(number + 0.5, 1.09 * highest, name, ha="center", va="center", fontsize=9.5, color=INK)
            parts.append(f"{watch.peak_of(name) / 1e6:.1f} MB at most in the {name}")
        axes.set_title(f"{title}: {top:.1f} MB at most", fontsize=10.5, color=INK)
        axes.set_xlabel("operations, one after the other", fontsize=9.5)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        most = {kind: max(row) for kind, row in zip(kinds, rows, strict=True)}
        bands = ", ".join(f"{kind} {size:.1f} MB" for kind, size in most.items())
        said.append(f"{title}: {', '.join(parts)}; each kind at its most: {bands}.")
    panels[0].set_ylabel("MB alive")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside right center", frameon=False, fontsize=9.5)
    return figure, "Memory alive after each operation of a training step, in bands by kind. " + " ".join(said)


def _places(watch: Watch) -> list[float]:
    """Where each operation lies from left to right, when all phases are drawn equally wide."""
    places, begin = [0.0], 0
    for number, (_, end) in enumerate(watch.phases):
        places += [number + (place - begin) / (end - begin) for place in range(begin + 1, end + 1)]
        begin = end
    return places + [float(len(watch.phases))] * (watch.operations - begin)


def profiled_peak(function: Callable[..., object], *args: object) -> int:
    """The most new bytes at once on the CPU, with what operations take for themselves and give back."""
    with torch.profiler.profile(
        profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]
    ) as profiled:
        function(*args)
    events = [event for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]"]
    alive = accumulate(event.nbytes() for event in sorted(events, key=lambda event: event.start_ns()))
    return max(alive, default=0)


CHANGING = """
import torch
kept = []
for step in range(200):
    kept = [*kept[-7:], torch.empty((1 + step * 37 % 100) * 1_000_000, dtype=torch.uint8, device="cuda")]
torch.cuda.empty_cache()
print(torch.cuda.memory_reserved())
"""


def reserved_after(expandable: bool) -> int:
    """Bytes of the GPU that PyTorch cannot give back while eight tensors live, after 200 of changing sizes.

    In a process of its own, where what is free as a whole was given back.
    """
    setting = f"expandable_segments:{expandable}"
    done = subprocess.run(
        [sys.executable, "-c", CHANGING],
        env=os.environ | {"PYTORCH_CUDA_ALLOC_CONF": setting},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)
