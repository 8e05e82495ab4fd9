"""A progress bar with the time that is left; plain lines where nobody watches."""

from __future__ import annotations

import sys
from time import monotonic

from tqdm import tqdm

EVERY_SECONDS = 10.0


class Progress:
    """Counts to ``total``: a bar in a terminal, a line every few seconds in a log."""

    def __init__(self, total: int, title: str, unit: str) -> None:
        self.total, self.title, self.unit = total, title, unit
        self.done, self.start = 0, monotonic()
        self.said = self.start
        self.bar = tqdm(total=total, desc=title, unit=f" {unit}s") if sys.stderr.isatty() else None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.close()

    def step(self) -> None:
        """One more is done."""
        self.done += 1
        now = monotonic()
        if self.bar:
            self.bar.update()
        elif now - self.said > EVERY_SECONDS or self.done == self.total:
            self.said = now
            left = (now - self.start) / self.done * (self.total - self.done)
            rest = f", about {length(left)} left" if self.done < self.total else ""
            print(
                f"{self.title}: {self.done} of {self.total} {self.unit}s{rest}", file=sys.stderr, flush=True
            )


def length(seconds: float) -> str:
    """A length of time as people say it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{minutes:.0f} min" if minutes < 100 else f"{hours:.1f} h"
