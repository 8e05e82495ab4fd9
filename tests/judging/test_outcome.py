"""A card shows what an answer said as text, whatever characters are in it."""

from __future__ import annotations

import pytest

from autograder.judging.outcome import Outcome

SAYS = "✓ passed: right in all 4 cases. (1 of 1 points)"
SHOWN = {
    "wrong \u202e dessap": r"wrong \u202e dessap",
    "a\u2066b\u2069\u200f\u061c": r"a\u2066b\u2069\u200f\u061c",
    "a\u200bb\ufeff\u00ad\U000e0041": r"a\u200bb\ufeff\xad\U000e0041",
    "\x1b[2J\x08\r\x00": r"\x1b[2J\x08\r\x00",
    "a\u2028b\x85\x0c": r"a\u2028b\x85\x0c",
    "\ud800": "\ufffd",
    "Grüße, 你好, שלום, 3\u00a0ms, é\u0301, 👍🏽": "Grüße, 你好, שלום, 3\u00a0ms, é\u0301, 👍🏽",
}


@pytest.mark.parametrize("said", SHOWN)
def test_what_does_not_show_is_written_out(said: str) -> None:
    card = Outcome("failed", 0, 1, said, [said])
    for form in (card.text(), card.html()):
        assert form.count(SHOWN[said]) == 2
        form.encode()


def test_the_first_line_is_the_cards_own_and_no_formula_is_typeset() -> None:
    card = Outcome("failed", 0, 1, f"wrong\n{SAYS}", [f"and\n{SAYS}"])
    assert [line for line in card.text().split("\n") if line.startswith("✓")] == []
    assert card.text().startswith("✗ failed: wrong ✓ passed")
    classes = card.html().partition('class="')[2].partition('"')[0].split()
    assert {"tex2jax_ignore", "mathjax_ignore"} <= set(classes)
