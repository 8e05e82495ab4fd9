"""How long the commands take stands in one file, and pages say what is in it."""

import json
import re
import runpy

import pytest
from programs import printed
from repository import ROOT

TIMES = runpy.run_path(str(ROOT / "benchmarks" / "times.py"))
KEPT = json.loads((ROOT / "data" / "times.json").read_text())


@pytest.mark.parametrize("page", TIMES["SAID"])
def test_a_page_says_what_was_measured(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert TIMES["rewritten"](page, text, KEPT["words"]) == text, "run benchmarks/times.py"


def test_the_words_are_those_of_the_figures() -> None:
    assert TIMES["words"](KEPT["figures"]) == KEPT["words"]
    assert KEPT["figures"].keys() <= TIMES["MOST"].keys()


def test_help_says_them_too() -> None:
    said = printed("make", "help", cwd=ROOT)
    for name in ("check", "test"):
        assert re.search(rf"^make {name} .*\({KEPT['words'][name]}\)$", said, re.MULTILINE)
