"""A line about a long run that is kept up to date: a bar in a terminal, a line every few seconds in a log."""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Event, Thread

from tqdm import tqdm

LOOK_SECONDS, LOG_SECONDS = 0.5, 10.0


class Progress:
    """While the block runs, shows what ``share()`` of the work is done (0 to 1), and ``words()`` about it."""

    def __init__(self, title: str, share: Callable[[], float], words: Callable[[], str]) -> None:
        self._title, self._share, self._words = title, share, words
        self._bar: tqdm | None = None
        if sys.stderr.isatty():
            form = f"{title}: {{bar:20}} {{elapsed}}, {{desc}}"
            self._bar = tqdm(total=1.0, dynamic_ncols=True, bar_format=form)
        self._over = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._bar is not None:
            self._show()
            self._bar.close()

    def _watch(self) -> None:
        while not self._over.wait(LOG_SECONDS if self._bar is None else LOOK_SECONDS):
            self._show()

    def _show(self) -> None:
        if self._bar is None:
            print(f"{self._title}: {self._words()}", file=sys.stderr, flush=True)
        else:
            self._bar.n = min(1.0, self._share())
            self._bar.set_description_str(self._words())


def length(seconds: float) -> str:
    """A length of time as people say it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, hours = seconds / 60, seconds / 3600
    if minutes < 10:
        return f"{minutes:.1f} min"
    return f"{minutes:.0f} min" if minutes < 100 else f"{hours:.1f} h"
