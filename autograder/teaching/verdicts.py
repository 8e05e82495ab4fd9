"""Cells that test a claim without a stopwatch, and what this session's cells have found out."""

import warnings
from collections.abc import Callable

from msgspec import to_builtins

from ..judging.calls import describe_error
from ..measuring.duel import Ratio
from ..measuring.units import times
from ..show import show, table_html, table_text
from .claims import CLAIMS, ScoreError
from .evidence import MIME, Evidence, holds, judge
from .guess import tally

# claim and what was looked at -> what was found; a cell that is run again replaces its own finding
_found: dict[tuple[str, str], Evidence] = {}


def behaviour(
    claim: str, sentence: str, holds: bool, *, when: str | None = None, unless: str | None = None
) -> None:
    """Test what a claim says torch does: ``sentence`` says it, ``holds`` is whether the claim holds there.

    ``when`` names the condition that this cell stands for, ``unless`` the one that it lacks. Raises
    ScoreError for an unknown claim, or a cell on both sides.
    """
    _tell(Evidence(claim, sentence, "behaviour", bool(holds), when, unless))


def fewer(
    claim: str,
    what: str,
    *,
    without: float,
    following: float,
    when: str | None = None,
    unless: str | None = None,
) -> None:
    """Test a claim of "less" by counting: ``what`` is counted, ``without`` the advice and ``following`` it.

    It holds where the first is so many times the second as the claim asks for. Raises ScoreError where a
    count decides nothing, and ValueError for counts that are not above 0.
    """
    if not (without > 0 and following > 0):
        raise ValueError(f"{what!r}: both counts must be above 0, not {without!r} and {following!r}.")
    ratio = Ratio(*[without / following] * 3)
    _tell(Evidence(claim, what, "counting", holds(claim, ratio), when, unless, ratio=ratio))


def documented(claim: str, sentence: str, link: str) -> None:
    """Rest a claim on PyTorch's documentation, at ``link``: what no cell can show."""
    _tell(Evidence(claim, sentence, "documentation", True, link=link))


def article_code(
    claim: str, what: str, run: Callable[[], object], right: Callable[..., bool] = lambda _: True
) -> None:
    """Run the article's own code, which ``what`` describes.

    It is wrong where it raises or where its result is not ``right``, and outdated where it warns.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            works, why = bool(right(run())), what
        except Exception as error:
            works, why = False, f"{what}: {describe_error(error).splitlines()[0]}"
    kinds = (DeprecationWarning, FutureWarning, PendingDeprecationWarning)
    outdated = any(
        # torchvision deprecates with a plain UserWarning.
        issubclass(warning.category, kinds) or "deprecated" in str(warning.message)
        for warning in caught
    )
    _tell(Evidence(claim, why, "code", works, outdated=outdated))


def _tell(found: Evidence) -> None:
    note(found)
    word = f"code {found.word}" if found.kind == "code" else found.word
    figure = f" ({times(found.ratio.median)})" if found.ratio else ""
    text = f"{found.claim} {word}: {found.what}{figure}"
    show(text, f"<p><b>{found.claim} {word}:</b> {found.what}{figure}</p>", {MIME: to_builtins(found)})


def note(found: Evidence) -> None:
    _found[found.claim, found.what] = found


def verdicts(*claims: str) -> None:
    """Show what this session found out about each of the given claims."""
    rows = []
    for claim in claims:
        mine = [found for found in _found.values() if found.claim == claim]
        try:
            verdict = judge(claim, mine)
            word, rule = str(verdict.word), verdict.rule
        except ScoreError:
            # Another chapter has the other side, or this machine disagrees with those recorded.
            verdict = judge(claim, [found for found in mine if found.kind == "code"])
            sides = (f"{found.word} {found.side_in_words}".rstrip() for found in mine)
            word, rule = "; ".join(dict.fromkeys(sides)), "see the page of all claims"
        rows.append((claim, CLAIMS[claim].says, word, verdict.code or "", rule))
    header = ("claim", "what it says", "advice", "its own code", "rule")
    text, html = table_text(header, rows), table_html(header, rows, "Verdicts on the claims of this chapter")
    guesses = tally()
    show(f"{text}\n{guesses}".rstrip(), f"{html}<p>{guesses}</p>" if guesses else html)
