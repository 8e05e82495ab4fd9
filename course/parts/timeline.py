"""Who works when: spans of time, noted while a program runs, and a picture of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from autograder.show import HERE, INK, RECORDED

COLOURS = {"loader": RECORDED, "device": HERE}


@dataclass
class Log:
    """What was done by whom, in seconds since the log was made; threads may write to it at the same time."""

    start: float = field(default_factory=time.perf_counter)
    spans: list[tuple[str, int, float, float]] = field(default_factory=list)

    @contextmanager
    def note(self, who: str, batch: int) -> Iterator[None]:
        """Note how long the block takes, who does it, and for which batch."""
        begin = time.perf_counter()
        yield
        self.spans.append((who, batch, begin - self.start, time.perf_counter() - self.start))

    def of(self, who: str) -> list[tuple[int, float, float]]:
        """The batches of one of them, with begin and end, in the order of time."""
        return sorted((batch, begin, end) for name, batch, begin, end in self.spans if name == who)

    @property
    def end(self) -> float:
        """When the last one was done."""
        return max(end for *_, end in self.spans)

    @property
    def waited(self) -> float:
        """The share of the whole time in which the device did nothing."""
        return 1 - sum(end - begin for _, begin, end in self.of("device")) / self.end

    @property
    def both(self) -> float:
        """For how long loader and device worked at the same time."""
        return sum(
            max(0.0, min(end, until) - max(begin, since))
            for _, begin, end in self.of("device")
            for _, since, until in self.of("loader")
        )


def draw_timelines(logs: Mapping[str, Log]) -> tuple[Figure, str]:
    """Draw one timeline below the other, on one scale; give the figure and the same in words."""
    figure = Figure(figsize=(7.5, 0.6 + 1.35 * len(logs)), dpi=110, layout="constrained")
    rows = list(figure.subplots(len(logs), 1, sharex=True, squeeze=False)[:, 0])
    words = []
    for axes, (name, log) in zip(rows, logs.items(), strict=True):
        for y, (who, colour) in enumerate(COLOURS.items()):
            for batch, begin, end in log.of(who):
                axes.barh(
                    y, 1e3 * (end - begin), left=1e3 * begin, height=0.74, color=colour, edgecolor="white"
                )
                axes.text(
                    500 * (begin + end),
                    y,
                    str(batch + 1),
                    ha="center",
                    va="center",
                    color="white",
                    weight="bold",
                )
        previous = 0.0
        for _, begin, end in log.of("device"):
            axes.barh(
                1,
                1e3 * (begin - previous),
                left=1e3 * previous,
                height=0.74,
                color="#F4F4F4",
                hatch="////",
                edgecolor="#BBBBBB",
                linewidth=0,
                zorder=0,
            )
            previous = end
        axes.axvline(1e3 * log.end, ymin=0.02, ymax=0.98, color=INK, lw=1.2)
        said = f"{1e3 * log.end:.0f} ms; the device waits for {log.waited:.0%}"
        axes.set_title(f"{name}: {said}", fontsize=9.5, loc="left", color=INK)
        axes.set_yticks(range(len(COLOURS)), [*COLOURS], fontsize=9)
        axes.set_ylim(1.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
        words.append(f"{name}: {said}; loader and device work at the same time for {1e3 * log.both:.0f} ms.")
    rows[-1].set_xlabel("milliseconds (hatched: the device waits; a number: the batch)", fontsize=9)
    rows[-1].set_xlim(0, 1.02e3 * max(log.end for log in logs.values()))
    return figure, "\n".join(words)
