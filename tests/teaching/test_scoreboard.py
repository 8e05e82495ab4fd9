"""The claims page: each claim has its cells, and its verdict is what was recorded and seen."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median

import nbformat
import pytest

from autograder.teaching import recordings, scoreboard
from autograder.teaching.claims import CLAIMS
from autograder.teaching.evidence import MIME, WORDS, Evidence, ScoreError, judge

SCRIPT = """
for size in (1, 20):
    compare(f"copy {size} MB", {"a": f, "b": g}, inputs=make, claim="A1")
compare("add", {"a": f, "b": g}, inputs=make, claim="A3")
compare("no claim", {"a": f, "b": g}, inputs=make)
compare("never recorded", {"a": f, "b": g}, inputs=make, claim="A4", only="cuda")
compare("on a CPU", {"a": f, "b": g}, inputs=make, claim="A2")
"""
SEEN = [
    Evidence("C3", "A buffer moves.", "behaviour", True),
    Evidence("C3", "its example", "code", False),
    Evidence("D6", "Nothing is promised.", "documentation", True, link="https://pytorch.org"),
]


def rows(markdown: str) -> dict[str, list[str]]:
    """The rows of a table of claims, by claim."""
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in markdown.splitlines()
        if line[:2] == "| "
    ]
    return {line[0]: line for line in lines if line[0] in CLAIMS}


@pytest.fixture
def course(tmp_path: Path) -> Path:
    (tmp_path / "01_one.py").write_text(SCRIPT)
    outputs = [
        nbformat.v4.new_output("display_data", {"text/plain": "", MIME: one.to_dict()}) for one in SEEN
    ]
    cell = nbformat.v4.new_code_cell("behaviour(…)", outputs=outputs)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "01_one.ipynb")
    return tmp_path


def record(folder: Path, **ratios: float) -> Path:
    """Timings of a CPU on which the advice was so many times faster."""
    folder.mkdir()
    titles = {"small": "copy 1 MB", "large": "copy 20 MB", "add": "add", "cpu": "on a CPU"}
    timings = {
        titles[name]: {"claim": "A1", "clock": "cpu", "seconds": {"a": [ratio] * 9, "b": [1.0] * 9}}
        for name, ratio in ratios.items()
    }
    device = {"kind": "cpu", "name": "Abacus", "torch": "2.15", "date": "2026-11-01"}
    (folder / "abacus.json").write_text(json.dumps({"device": device, "timings": timings}))
    return folder


def test_verdicts_follow_from_figures_and_from_what_notebooks_show(course: Path, tmp_path: Path) -> None:
    found = scoreboard.findings(course, record(tmp_path / "timings", small=5, large=2, add=1, cpu=9))
    table = rows(scoreboard.table(found, list(CLAIMS)))
    link = " ([01](01_one.ipynb))"
    assert table["A1"][2] == f"**holds** When {CLAIMS['A1'].use}: 2× to 5×.{link}"
    assert table["A3"][2].startswith("**does not pay** When")
    assert table["A4"][2] == f"**not measured (needs a GPU)**{link}"
    assert table["A2"][2] == f"**not measured (needs a GPU)**{link}", "a figure of a CPU decides nothing"
    assert table["C3"][2] == f"**holds** When {CLAIMS['C3'].use}. The article's own code is wrong.{link}"
    assert table["D6"][2].startswith("**holds**")
    assert "[**documented**](https://pytorch.org)" in "".join(map(scoreboard._sentence, found))


def test_the_summary_says_what_verdicts_rest_on(course: Path, tmp_path: Path) -> None:
    found = scoreboard.findings(course, record(tmp_path / "timings", small=5, large=2))
    said = scoreboard.summary(found)
    assert said.startswith("No GPU was measured yet")
    assert "holds: 3" in said
    assert "timing: 1" in said and "behaviour: 1" in said and "documentation: 1" in said


def test_figures_of_this_machine_stand_beside_and_decide_nothing(course: Path, tmp_path: Path) -> None:
    recorded, here = record(tmp_path / "timings", add=2), record(tmp_path / "here", add=0.25)
    found = scoreboard.findings(course, recorded, here)
    *_, verdict, figure = rows(scoreboard.table(found, ["A3"]))["A3"]
    assert verdict.startswith(f"**holds** When {CLAIMS['A3'].use}: 2×.")
    assert figure == "0.25×"


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ('compare("add", {}, inputs=make, claim=name)', "a title, a claim or a condition is no plain text"),
        ('compare("add", {}, inputs=make, claim="A9")', "There is no claim 'A9'"),
        (
            'compare("add", {}, inputs=make, claim="A2", only="cpu")',
            "A2 is about cuda, and 'add' runs on cpu",
        ),
        ('compare("add", {}, inputs=make, claim="C3")', "C3 promises correctness, so the figure of 'add'"),
    ],
)
def test_a_cell_that_can_decide_nothing_is_refused(course: Path, cell: str, sentence: str) -> None:
    (course / "02_two.py").write_text(f"x = 1\n{cell}\n")
    with pytest.raises(ScoreError, match=rf"02_two\.py, line 2: {re.escape(sentence)}"):
        scoreboard.findings(course)


def test_a_condition_without_a_second_side_is_refused(course: Path, tmp_path: Path) -> None:
    (course / "02_two.py").write_text('compare("add", {}, inputs=make, claim="A3", when="it rains")\n')
    found = scoreboard.findings(course, record(tmp_path / "timings", add=2))
    with pytest.raises(ScoreError, match="A3: the condition 'it rains' has cells on one side only"):
        scoreboard.with_scores(f"{scoreboard.BEGIN}\n{scoreboard.END}", found)


def test_the_readme_groups_claims_by_verdict(course: Path, tmp_path: Path) -> None:
    found = scoreboard.findings(course, record(tmp_path / "timings", small=5, large=2, add=1))
    readme = scoreboard.with_scores(f"before\n{scoreboard.BEGIN}\n{scoreboard.END}\nafter", found)
    groups = re.findall(r"(?m)^\*\*(.+)\*\* \((\d+)\)$", readme)
    assert [word for word, _ in groups][:2] == ["Holds", "Does not pay"]
    assert sum(int(number) for _, number in groups) == len(CLAIMS) == len(rows(readme))
    assert "Its code: wrong." in " ".join(rows(readme)["C3"])
    assert scoreboard.with_scores(readme, found) == readme


def test_a_readme_without_the_marks_is_refused() -> None:
    with pytest.raises(ScoreError, match="the README lacks"):
        scoreboard.with_scores("# Title", [])


def test_every_claim_has_a_cell_and_at_most_six_that_need_a_gpu_lack_a_rule() -> None:
    found = scoreboard.findings()
    assert {one.claim for one in found} == set(CLAIMS)
    verdicts = {claim: scoreboard.verdict_of(claim, found) for claim in CLAIMS}
    without = [claim for claim, verdict in verdicts.items() if not verdict.rule]
    assert all(CLAIMS[claim].device == "cuda" for claim in without) and len(without) <= 6, without


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
    assert rows(shown) == rows(scoreboard.table(scoreboard.findings(), list(CLAIMS))), "run make notebooks"
    assert set(rows(shown)) == set(CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS)
def test_no_verdict_contradicts_its_recorded_figures(claim: str, root: Path) -> None:
    """From the raw samples, without the code that made the verdict's figures."""
    found = [one for one in scoreboard.findings() if one.claim == claim]
    verdict = judge(claim, found)
    assert verdict.word in WORDS
    for one in found:
        if one.kind != "timing" or not one.ratio:
            continue
        (recording,) = [
            each for each in recordings.recordings()[one.what] if each.device["name"] == one.device
        ]
        first, *_, last = recording.seconds.values()
        ratio = median(first) / median(last)
        assert one.ratio.median == pytest.approx(ratio, rel=0.15)
        if not one.is_price:
            assert one.holds == (one.ratio.low >= CLAIMS[claim].at_least)
        if verdict.word == "holds" and not one.is_price:
            assert ratio > 0.95 * CLAIMS[claim].at_least
        if verdict.word == "does not pay":
            assert ratio < 1.15 * CLAIMS[claim].at_least
