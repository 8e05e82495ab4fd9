"""The reader's guesses of ratios: one small file on this machine, which its owner may read and delete.

The first guess on each question counts. Nothing is sent anywhere.
"""

from __future__ import annotations

import math
from statistics import median

from ..measuring import store
from ..show import in_notebook

NAME = "guesses"
NEAR, LEANS = 2.0, 1.25  # factors: a guess is near within the first; all of them lean beyond the second


def note_guess(question: str, guess: float, measured: float) -> None:
    """Keep the first guess on a question, with what was measured; in a notebook only."""
    if in_notebook() and question not in (kept := store.read(NAME) or {}):
        store.write(NAME, kept | {question: [guess, measured]})


def tally() -> str:
    """How near all guesses were, and to which side they lean; nothing before there are two."""
    kept = [guess / measured for guess, measured in (store.read(NAME) or {}).values()]
    if len(kept) < 2:
        return ""
    near = sum(1 / NEAR <= off <= NEAR for off in kept)
    lean = math.exp(median(map(math.log, kept)))
    word = "too high" if lean > LEANS else "too low" if lean < 1 / LEANS else "neither too high nor too low"
    return f"Your guesses so far: within {NEAR:g}× in {near} of {len(kept)}, mostly {word}."
