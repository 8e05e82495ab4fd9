"""The claims page: each claim has its cells, and its verdict is what was recorded and seen."""

import json
import re
from itertools import accumulate, pairwise
from operator import truediv
from pathlib import Path
from statistics import median

import msgspec
import nbformat
import pytest
from repository import ROOT, notebook

from autograder.teaching import recordings, remember, scoreboard
from autograder.teaching.claims import CLAIMS, ScoreError
from autograder.teaching.evidence import MIME, Advice, Evidence, judge

SCRIPT = """
for size in (1, 20):
    compare(f"copy {size} MB", {"a": f, "b": g}, inputs=make, claim="F23")
compare("add", {"a": f, "b": g}, inputs=make, claim="F6")
compare("no claim", {"a": f, "b": g}, inputs=make)
compare("never recorded", {"a": f, "b": g}, inputs=make, claim="A4", only="cuda")
compare("on a CPU", {"a": f, "b": g}, inputs=make, claim="A2")
"""
SEEN = [
    Evidence("C3", "A buffer moves.", "behaviour", True),
    Evidence("C3", "its example", "code", False),
    Evidence("D6", "Nothing is promised.", "documentation", True, link="https://pytorch.org"),
]


def rows(page: str) -> dict[str, str]:
    """What it says of each claim, by claim."""
    return {row[1]: row[0] for row in re.finditer(r"(?m)^- \*\*.+\*\* ([A-F]\d+), .*(\n  - .*)*", page)}


@pytest.fixture
def course(tmp_path: Path) -> Path:
    (tmp_path / "01_one.py").write_text(SCRIPT)
    outputs = [nbformat.v4.new_output("display_data", {MIME: msgspec.to_builtins(one)}) for one in SEEN]
    cell = nbformat.v4.new_code_cell("behaviour(…)", outputs=outputs)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "01_one.ipynb")
    return tmp_path


def record(folder: Path, **ratios: float) -> Path:
    """Timings of a CPU on which the advice was so many times faster."""
    folder.mkdir()
    titles = {"small": "copy 1 MB", "large": "copy 20 MB", "add": "add", "cpu": "on a CPU"}
    timings = {
        titles[name]: {"claim": "F23", "clock": "cpu", "seconds": {"a": [ratio] * 9, "b": [1.0] * 9}}
        for name, ratio in ratios.items()
    }
    device = {"kind": "cpu", "name": "Abacus", "torch": "2.15", "date": "2026-11-01"}
    (folder / "abacus.json").write_text(json.dumps({"device": device, "timings": timings}))
    return folder


def test_verdicts_follow_from_figures_and_from_what_notebooks_show(course: Path, tmp_path: Path) -> None:
    found = scoreboard.findings(course, record(tmp_path / "timings", small=5, large=2, add=1, cpu=9))
    of = lambda word: rows(scoreboard.section(found, word))
    holds, no, waits = map(of, (Advice.HOLDS, Advice.DOES_NOT_PAY, Advice.NEEDS_A_GPU))
    says, use = CLAIMS["F23"].says, CLAIMS["F23"].use
    rule = f"\n  - *On one CPU, in one process*, when {use}: 2× to 5× faster."
    assert holds["F23"] == f"- **{says}** F23, [01](01_one.ipynb){rule}"
    assert {"A2", "A4"} <= set(waits), "a CPU decides nothing there"
    assert "D6" in holds and no["F6"].endswith(": about as fast (1×).")
    assert holds["C3"].endswith("*The article's own code* is wrong.")
    page = scoreboard.section(found, Advice.HOLDS)
    assert "[**documented**](https://pytorch.org)" in page and "1 more: PyTorch has what they name" in page
    said = "No GPU was measured yet. Of 112 claims 3 hold, 1 do not pay, "
    assert scoreboard.summary(found).startswith(said)


def test_figures_of_this_machine_stand_beside_and_decide_nothing(course: Path, tmp_path: Path) -> None:
    recorded, here = record(tmp_path / "timings", add=2), record(tmp_path / "here", add=0.25)
    found = scoreboard.findings(course, recorded, here)
    said = scoreboard.row("F6", found)
    assert said.endswith(f"when {CLAIMS['F6'].use}: 2× faster.\n  - *This machine:* 0.25×")


def test_a_cell_that_can_decide_nothing_is_refused(course: Path) -> None:
    for arguments, why in {
        "claim=name": "a title or a claim is no plain text",
        'claim="A9"': "There is no claim 'A9'",
        'claim="A2", only="cpu"': "A2 is about cuda, and 'add' runs on cpu",
        'claim="C3"': "C3 promises existence, so the figure of 'add'",
    }.items():
        (course / "02_two.py").write_text(f'x = 1\ncompare("add", {{}}, inputs=make, {arguments})\n')
        with pytest.raises(ScoreError, match=rf"02_two\.py, line 2: {why}"):
            scoreboard.findings(course)


def test_what_to_remember_has_figures_and_its_chapter(course: Path, tmp_path: Path) -> None:
    found = scoreboard.findings(course, record(tmp_path / "timings", small=5, large=2))
    thing = '[[thing]]\nclaim = "{}"\nabout = ""\non = "cpu"\nsays = "{{figures}}."\n'
    (tmp_path / "remember.toml").write_text(thing.format("F23") + thing.format("F6"))
    (only,) = remember.things(found, tmp_path / "remember.toml")  # nobody has measured the other one
    assert only.bar(found) == 'faster <span aria-hidden="true">█░</span>', "twice, and five times"
    assert only.sentence(found, "course/") == "2× to 5× faster. ([chapter 01](course/01_one.ipynb))"
    (tmp_path / "remember.toml").write_text(thing.format("F23").replace("cpu", "abacus"))
    with pytest.raises(ScoreError, match=r"remember\.toml, F23: Invalid enum value 'abacus' - at `[$]\.on`"):
        remember.things(found, tmp_path / "remember.toml")
    with pytest.raises(ScoreError, match="the README lacks"):
        remember.with_three("# Title", found)


@pytest.fixture(scope="module")
def findings() -> list[Evidence]:
    return scoreboard.findings()


def test_every_claim_has_a_cell_and_at_most_six_that_need_a_gpu_lack_a_rule(findings) -> None:
    assert {one.claim for one in findings} == set(CLAIMS)
    for claim, part in [(name, part) for name, one in CLAIMS.items() for part in one.lacks]:
        assert any(claim == one.claim and one.unless and part in one.what for one in findings), (claim, part)
    without = [claim for claim in CLAIMS if not judge(claim, findings).rule]
    assert all(CLAIMS[claim].device == "cuda" for claim in without) and len(without) <= 6, without


def test_the_readme_and_the_page_have_the_current_scores(findings) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert remember.with_three(readme, findings) == readme, "run make notebooks"
    assert len(remember.things(findings)) == 10
    # Its outputs, which readers without a kernel see.
    cells = notebook(ROOT / "course/claims").cells
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", ())]
    shown = "\n".join(output.get("text/markdown", "") for output in outputs)
    missing = [word for word in Advice if scoreboard.section(findings, word) not in shown]
    assert missing == [] and set(rows(shown)) == set(CLAIMS), "run make notebooks"


def test_no_verdict_contradicts_its_recorded_figures(findings) -> None:
    """From the raw samples, without the code that made the verdict's figures."""
    word = {claim: judge(claim, [one for one in findings if one.claim == claim]).word for claim in CLAIMS}
    timings = [one for one in findings if one.kind == "timing" and one.ratio]
    assert len(timings) > 40
    for one in timings:
        known = recordings.recordings()[one.what]
        (recording,) = [each for each in known if each.facts["name"] == one.device]
        first, *_, last = recording.seconds.values()
        ends = [0, *accumulate(recording.processes)]
        ratio = median(median(map(truediv, first[a:b], last[a:b])) for a, b in pairwise(ends))
        asked = CLAIMS[one.claim].at_least
        assert one.ratio.median == pytest.approx(ratio, rel=0.01), one
        if not one.is_price:
            assert one.holds == (one.ratio.low >= asked), one
        if word[one.claim] is Advice.HOLDS and not one.is_price:
            assert ratio > 0.95 * asked, one
        if word[one.claim] is Advice.DOES_NOT_PAY:
            assert ratio < 1.15 * asked, one
