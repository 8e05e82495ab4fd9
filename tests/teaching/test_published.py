"""What others published: every figure has its source, and verdicts follow by written rules."""

import re
from itertools import chain

import pytest
from repository import ROOT

from autograder.teaching import published as module
from autograder.teaching import published_picture, scoreboard
from autograder.teaching.claims import CLAIMS, ScoreError
from autograder.teaching.published import Published, collection, decide, published_on

ASIDE, PUBLISHED = collection()
read = collection.__wrapped__  # again and again
FOUND = {"claim": "A5", "compares": "a step", "without": "off", "following": "on", "title": "a thread"}
SOURCE = "https://github.com/a/b/issues/1"
FIGURE = FOUND | {"before": 3, "after": 2.0, "unit": "ms", "better": "less", "ratio": 1.5, "address": SOURCE}
# The twelve rows that only a GPU decides, with what is published on them.
WORDS = {
    **dict.fromkeys(("A4", "A5", "D1", "D2", "E3", "F25"), "holds when …"),
    **dict.fromkeys(("A2", "B5", "F2"), "mixed"),
    **{"F24": "holds", "F40": "one source only", "D3": "no figure counts"},
}


def test_every_figure_has_two_sides_a_unit_and_a_source() -> None:
    figures = {name: one for name, one in PUBLISHED.items() if not one.table}
    assert len(figures) == 203
    for name, one in figures.items():
        assert one.unit and one.title and re.match(r"https://[\w.]+/\S+$", one.address), name
        assert one.without and one.following and one.device, name
        assert one.ratio_most is None or one.ratio_most > one.ratio, name
        assert one.date is None or one.date < "2026-12", name
        assert len(one.quote or "") < 100, name


def test_tables_are_whole_and_their_licences_lie_beside_them() -> None:
    pairs = {table: 0 for table in ("channels_last", "compile", "data_parallel")}
    for one in PUBLISHED.values():
        if one.table:
            assert one.licence in ("Apache-2.0", "MIT") and all(point.ratio > 0 for point in one.points)
            pairs[one.table] += len(one.points)
    assert pairs == {"channels_last": 4246, "compile": 3957, "data_parallel": 768}
    told = (ROOT / "data/published/README.md").read_text(encoding="utf-8")
    for number in pairs.values():
        assert f"{number:,} pairs" in told
    for licence in re.findall(r"\(\.\./(licences/[^)]+)\)", told):
        assert (ROOT / "data" / licence).is_file()
    train = [one for two in published_on("E3") for one in two.points if ", training, " in one.row]
    assert len(train) == 796 and sum(point.ratio < 1 for point in train) == 149


def test_a_figure_that_breaks_a_rule_is_refused_by_name(tmp_path) -> None:
    path = tmp_path / "figures.toml"

    def write(given: dict) -> None:
        lines = [f"{key} = {value!r}" for key, value in given.items() if value is not None]
        path.write_text("\n".join(['[aside]\n"no figure" = ""\nbatch = ""', "[figures.A5-01]", *lines]))

    write(FIGURE)
    assert list(read(path)[1]) == ["A5-01"]
    for change, why in [
        ({"address": None}, "address"),
        ({"address": "a talk"}, "has an address that begins with https://"),
        ({"unit": None}, "unit"),
        ({"ratio": 1.4}, "3 and 2.0 give 1.5, and not 1.4"),
        ({"better": None}, "which is better"),
        ({"ratio": None}, "stands aside"),
        ({"claim": "Z9"}, "there is no claim 'Z9'"),
        ({"aside": "because"}, "aside may be no figure"),
        ({"aside": "batch", "when": "it rains"}, "it stands on one side"),
        ({"date": "in May"}, "'in May' is no year"),
        ({"quote": "fast"}, "a source without a licence is not quoted"),
        ({"colour": "red"}, "colour"),
        ({"before": "3"}, "before"),
    ]:
        write(FIGURE | change)
        with pytest.raises(ScoreError, match=rf"^figures\.toml, A5-01: .*{re.escape(why)}"):
            read(path)


def some(*ratios: float, source: int = 0, **sides: object) -> list[Published]:
    given = {**FOUND, "unit": "ms", "address": f"https://github.com/a/b/issues/{source}"}
    return [Published(**given, ratio=ratio, **sides) for ratio in ratios]


def test_verdicts_on_made_up_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    def word(*found: list[Published]) -> str:
        monkeypatch.setattr(module, "collection", lambda: (ASIDE, dict(enumerate(chain(*found)))))
        return decide("A5")[0]

    other = {"source": 1}
    assert word([]) == word(some(2, aside="batch")) == "no figure counts"
    assert word(some(2, 2, 2)) == "one source only" and word(some(2), some(1.1, **other)) == "holds"
    assert word(some(2), some(1.09, **other)) == "mixed"
    assert word(some(2, 2, 2), some(1, **other)) == "holds"
    assert word(some(1, 1, 1), some(2, **other)) == "does not pay"
    assert word(some(2), some(1, aside="batch", **other)) == "one source only"
    on, off = {"when": "it is dry"}, {"unless": "it is dry"}
    assert word(some(2, **on), some(2, **on, **other), some(1, **off)) == "holds when …"
    assert "When it is dry: 2×; otherwise 1×." in decide("A5")[1]
    assert word(some(2, 2, **on), some(1, **off, **other)) == "mixed"  # one source where it holds
    assert word(some(2, **on), some(2, **on, **other), some(1, 2, **off)) == "holds"  # parted by nothing
    assert word(some(2, **on), some(2, **on, **other), some(1, **off), some(9)) == "holds when …"
    assert "on neither side 1" in decide("A5")[2]
    assert word(some(2, own=True), some(2, **other)) == "holds" and "their own 1" in decide("A5")[2]


def test_what_is_published_stands_apart_on_the_page_and_in_a_chapter(capsys: pytest.CaptureFixture) -> None:
    assert "*Published by others:* **holds when …** When a network is trained: " in scoreboard.row("D2", [])
    assert "ublished" not in scoreboard.row("C1", [])
    published_picture.published("F24", 1.4)
    shown = capsys.readouterr().out
    assert "No figure of this course is in it" in shown and "2 of the 3 that count gain more" in shown
    for claim in CLAIMS:
        if rows := published_picture.rows_of(published_on(claim)):
            assert published_picture.draw_published(rows, 1.1, 1.3).axes


def test_the_page_of_rules_names_each_reason_and_each_word() -> None:
    text = (ROOT / "docs/published.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^   \| ([^|]+) \| ([^|]+) \|$", text, re.M)[2:]) == ASIDE
    table = text.split("The words that follow:")[1].split("\n\n")[1]
    assert set(re.findall(r"^\| ([a-z …]+) \|", table, re.M)[1:]) == set(WORDS.values()) | {"does not pay"}
    assert {claim: decide(claim)[0] for claim in WORDS} == WORDS
