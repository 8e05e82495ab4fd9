"""The claims page: each claim has its cells, and its verdict is what the recorded figures say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median

import nbformat
import pytest

from autograder.teaching import scoreboard
from autograder.teaching.claims import CLAIMS, WORDS

SCRIPT = """
for size in (1, 20):
    compare(f"copy {size} MB", {"a": f, "b": g}, inputs=make, claim="A1")
compare("add", {"a": f, "b": g}, inputs=make, claim="A3")
compare("no claim", {"a": f, "b": g}, inputs=make)
compare("never recorded", {"a": f, "b": g}, inputs=make, claim="A4", only="cuda")
verdict("A2", "wrong", "It does not exist.", shown=True)
verdict("A3", "holds", "It shares memory.", shown=True)
"""


def rows(markdown: str) -> dict[str, list[str]]:
    """The rows of a table of claims, by claim."""
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in markdown.splitlines()
        if line[:2] == "| "
    ]
    return {line[0]: line[1:] for line in lines if line[0] in CLAIMS}


@pytest.fixture
def course(tmp_path: Path) -> Path:
    (tmp_path / "01_one.py").write_text(SCRIPT)
    return tmp_path


def record(folder: Path, **ratios: float) -> Path:
    """Timings of a device on which the advice was so many times faster."""
    folder.mkdir()
    titles = {"small": "copy 1 MB", "large": "copy 20 MB", "add": "add"}
    timings = {
        titles[name]: {"claim": "A1", "clock": "cpu", "seconds": {"a": [ratio] * 9, "b": [1.0] * 9}}
        for name, ratio in ratios.items()
    }
    device = {"kind": "cpu", "name": "Abacus", "torch": "2.15", "date": "2026-11-01"}
    (folder / "abacus.json").write_text(json.dumps({"device": device, "timings": timings}))
    return folder


def test_a_score_follows_from_figures_and_stated_verdicts(course: Path, tmp_path: Path) -> None:
    found = scoreboard.findings(course, record(tmp_path / "timings", small=5, large=0.5, add=2))
    table = rows(scoreboard.table(found, ["A1", "A2", "A3", "A4"], "course/"))
    link = "[01](course/01_one.ipynb)"
    assert table["A1"][1:] == [link, "depends", "0.5× to 5×"]
    assert table["A2"][1:] == [link, "wrong", ""]
    assert table["A3"][1:] == [link, "holds", "2×"]
    assert table["A4"][1:] == [link, "not measured yet", ""]


def test_figures_of_this_machine_stand_beside_and_decide_nothing(course: Path, tmp_path: Path) -> None:
    recorded, here = record(tmp_path / "timings", add=2), record(tmp_path / "here", add=0.25)
    found = scoreboard.findings(course, recorded, here)
    assert rows(scoreboard.table(found, ["A3"]))["A3"][2:] == ["holds", "2×", "0.25×"]
    assert rows(scoreboard.table(found, ["A3"], here=False))["A3"][2:] == ["holds", "2×"]


def test_a_claim_that_is_no_plain_text_is_refused(course: Path) -> None:
    (course / "02_two.py").write_text('x = 1\ncompare("add", {}, inputs=make, claim=name)\n')
    with pytest.raises(ValueError, match=r"02_two\.py, line 2: a title, claim or verdict is no plain text"):
        scoreboard.findings(course)


def test_a_readme_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="the README lacks"):
        scoreboard.with_scores("# Title", [])


def test_every_claim_has_a_cell() -> None:
    tested = {cell.claim for cell in scoreboard.cells()}
    assert tested == set(CLAIMS)


def test_the_readme_has_the_current_scores(root: Path) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert scoreboard.with_scores(readme, scoreboard.findings()) == readme, "run make notebooks"


def test_the_page_has_the_current_scores(root: Path) -> None:
    """Its outputs, which readers without a kernel see."""
    notebook = nbformat.read(root / "course" / "claims.ipynb", as_version=4)
    shown = "\n".join(
        output.data["text/markdown"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "text/markdown" in output.get("data", {})
    )
    found = scoreboard.findings()
    for claim, row in rows(shown).items():
        assert row[2] == scoreboard.score([f for f in found if f.claim == claim]), "run make notebooks"
    assert set(rows(shown)) == set(CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS)
def test_no_verdict_contradicts_its_recorded_figures(claim: str, root: Path) -> None:
    """From the raw samples and the README's text, without the code that made it."""
    board = (root / "README.md").read_text(encoding="utf-8")
    word = rows(board)[claim][2]
    ratios = [
        median(first) / median(last)
        for path in (root / "data" / "timings").glob("*.json")
        for timing in json.loads(path.read_text())["timings"].values()
        if timing["claim"] == claim
        for first, *_, last in [list(timing["seconds"].values())]
    ]
    assert word in (*WORDS, scoreboard.UNKNOWN)
    if word == "holds":
        assert all(ratio > 1.05 for ratio in ratios)
    if word in ("does not hold", "wrong"):
        assert all(ratio < 1.25 for ratio in ratios)
    if ratios:
        assert word != scoreboard.UNKNOWN
        printed = [
            float(number.replace(",", "")) for number in re.findall(r"([\d.,]+)×", board_row(board, claim))
        ]
        assert min(printed) == pytest.approx(min(ratios), rel=0.15)
        assert max(printed) == pytest.approx(max(ratios), rel=0.15)


def board_row(board: str, claim: str) -> str:
    """The figures in a claim's row."""
    return " ".join(rows(board)[claim][3:])
