"""The reader's guesses: what counts as one, how near it came, and results that stay folded until then.

The first guess on each question is kept in one small file on this machine, which its owner may read and
delete. Nothing is sent anywhere.
"""

import json
import math
import reprlib
from collections import Counter
from html import escape
from statistics import median
from typing import TYPE_CHECKING, TypeGuard

from ..measuring import store
from ..measuring.device import device_name
from ..measuring.units import rounded
from ..show import in_notebook, picture_html, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "guesses"
WORDS = RIGHT, CLOSE, FAR = "right", "near", "far off"
WITHIN = {RIGHT: 1.2, CLOSE: 2.0}  # factors
LATER = "Guess first: write a guess in place of the dots and run both cells; or open."


def ratio_guessed(guess: object) -> tuple[float | None, str]:
    """A guess of a ratio as a number, and a sentence where there is none; nothing is said where None asks for
    none. ``...`` is no guess yet.
    """
    if guess is None or guess is ...:
        return None, "" if guess is None else "No guess yet."
    if _is_number(guess) and 0 < guess < math.inf:
        return float(guess), ""
    said = reprlib.repr(guess)
    return None, f"A guess is one number above 0 (2.0 means twice as fast); {said} is left out."


def folded(summary: str, html: str) -> str:
    """HTML that shows its summary and unfolds without a script, by mouse, keyboard and screen reader."""
    return f"<details><summary>{escape(summary)}</summary>{html}</details>"


def guessed(
    question: str, guess: object, truth: object, *lines: str, drawing: "tuple[Figure, str] | None" = None
) -> None:
    """Show what the reader was asked: ``truth``, which the cell has measured or counted, how near the guess
    comes (see ``how_near``), further lines, and a figure with its alternative text. All is folded as long as
    ``guess`` is ``...``.
    """
    answer, text, said = f"{question}: {_in_words(truth)}.", "\n".join(lines), "No guess yet."
    if guess is not ...:
        said = f"You said {_in_words(guess)}: {judged(question, guess, truth)}"
    html = f"<p><b>{escape(answer)}</b> {escape(said)}</p>"
    html += f'<pre style="white-space:pre-wrap">{escape(text)}</pre>'
    if drawing and in_notebook():
        html += picture_html(*drawing)
    if guess is ...:
        truths = truth if isinstance(truth, tuple) else (truth,)
        whole = [isinstance(one, int) for one in truths]
        asked = {"title": question, "truths": list(map(_kept, truths)), "whole": whole}
        html = folded(f"{question}: measured on {device_name('cpu')}. {LATER}", html)
        html = html.replace("<details", f'<details data-asked="{escape(json.dumps(asked))}"', 1)
    show(f"{answer} {said}\n{text}".rstrip(), html)


def judged(question: str, guess: object, truth: object) -> str:
    """How near a guess came, and all so far; in a notebook, the first guess on a question is kept."""
    word = how_near(guess, truth)
    if in_notebook() and question not in (kept := store.read(NAME)):
        store.write(NAME, kept | {question: [_kept(guess), _kept(truth), word]})
    return f"{word}. {tally()}".rstrip()


def how_near(guess: object, truth: object) -> str:
    """One of ``WORDS``. A word is right or far off; a whole number is near where it is off by one or a tenth.

    Any other number was measured, and counts by its factor (``WITHIN``). Of a tuple, the worst counts.
    """
    if isinstance(truth, tuple):
        if not (isinstance(guess, (tuple, list)) and len(guess) == len(truth)):
            return FAR
        return max(map(how_near, guess, truth), key=WORDS.index)
    if not (_is_number(guess) and _is_number(truth)):
        return RIGHT if _in_words(guess).strip().lower() == _in_words(truth).lower() else FAR
    if isinstance(truth, int):
        off = abs(guess - truth)
        return RIGHT if off == 0 else CLOSE if off <= max(1, truth / 10) else FAR
    factor = max(guess / truth, truth / guess) if guess * truth > 0 else 1 if guess == truth else math.inf
    return next((word for word, most in WITHIN.items() if factor <= most), FAR)


def tally() -> str:
    """How near all guesses were, and to which side they lean; nothing before there are two."""
    kept = list(store.read(NAME).values())
    if len(kept) < 2:
        return ""
    words = Counter(word[0] if word else how_near(guess, truth) for guess, truth, *word in kept)
    numbers = [(guess, truth) for guess, truth, *_ in kept if _is_number(guess) and _is_number(truth)]
    lean = median([guess / truth for guess, truth in numbers if guess * truth > 0] or [1])
    most = WITHIN[RIGHT]
    side = "too high" if lean > most else "too low" if lean < 1 / most else "neither too high nor too low"
    near = f"{words[RIGHT]} right and {words[CLOSE]} near (within {WITHIN[CLOSE]:g}×) of {len(kept)}"
    return f"Your guesses so far: {near}, mostly {side}."


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _kept(value: object) -> int | float | str:
    return value if _is_number(value) else _in_words(value)


def _in_words(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return " and ".join(map(_in_words, value))
    if _is_number(value):
        return f"{value:,}" if isinstance(value, int) else rounded(value)
    return value if isinstance(value, str) else reprlib.repr(value)
