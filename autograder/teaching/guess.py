"""The reader's guesses: what counts as one, and a result that stays folded until somebody has guessed.

Those of ratios are kept in one small file on this machine, which its owner may read and delete: the first
guess on each question. Nothing is sent anywhere.
"""

from __future__ import annotations

import math
import reprlib
from html import escape
from statistics import median

from ..measuring import store
from ..measuring.device import device_name
from ..show import in_notebook, show

NAME = "guesses"
NEAR, LEANS = 2.0, 1.25  # factors: a guess is near within the first; all of them lean beyond the second
LATER = "Guess first: write a number in place of the dots and run both cells; or open."


def ratio_guessed(guess: object) -> tuple[float | None, str]:
    """A guess of a ratio as a number, and a sentence where there is none; nothing is said where None asks for
    none. ``...`` is no guess yet.
    """
    if guess is None or guess is ...:
        return None, "" if guess is None else "No guess yet."
    if isinstance(guess, (int, float)) and not isinstance(guess, bool) and 0 < guess < math.inf:
        return float(guess), ""
    said = reprlib.repr(guess)
    return None, f"A guess is one number above 0 (2.0 means twice as fast); {said} is left out."


def folded(summary: str, html: str) -> str:
    """HTML that shows its summary and unfolds without a script, by mouse, keyboard and screen reader."""
    return f"<details><summary>{escape(summary)}</summary>{html}</details>"


def guessed(guess: object, *lines: str) -> None:
    """Show lines of text that answer what the reader was asked; folded as long as ``guess`` is ``...``."""
    text = "\n".join(lines)
    html = f'<pre style="white-space:pre-wrap">{escape(text)}</pre>'
    if guess is ...:
        show(f"No guess yet.\n{text}", folded(f"Measured on {device_name('cpu')}. {LATER}", html))
    else:
        said = f"Your guess: {reprlib.repr(guess)}."
        show(f"{text}\n{said}", f"{html}<p>{escape(said)}</p>")


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
