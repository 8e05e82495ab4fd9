"""What a comparison found: the samples, and the lines that its table and its chart show."""

from __future__ import annotations

from dataclasses import dataclass

from ..measuring.duel import Ratio, Samples


@dataclass(frozen=True)
class Line:
    """One row of the table and the chart: a variant against the first one, on one device."""

    device: str
    variant: str
    median: float
    ratio: Ratio | None
    recorded: bool
    is_limit: bool = False


@dataclass(frozen=True)
class Comparison:
    """What ``compare`` measured here: ``samples`` by device, and the ``lines`` it showed."""

    title: str
    samples: dict[str, Samples]
    lines: list[Line]

    def ratio(self, device: str = "cpu") -> Ratio:
        """How many times faster the last variant is than the first, on a device of this machine.

        Raises KeyError for a device that was not measured.
        """
        first, *_, last = self.samples[device].blocks
        return self.samples[device].ratio(first, last)

    def _ipython_display_(self) -> None:
        """Nothing more: ``compare`` has shown it already."""
