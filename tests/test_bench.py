"""The figures that are published: they keep the promises, and pages say what was measured."""

import copy
import json
import re
import runpy
from datetime import date, timedelta

import pytest
from programs import printed
from repository import CHAPTERS, ROOT, published

from autograder.__main__ import main
from autograder.authoring import records
from autograder.teaching.scripts import comparisons

TIMES = runpy.run_path(str(ROOT / "benchmarks" / "times.py"))


def test_the_published_table_keeps_the_promise():
    content = published("judge")
    ours = [row for row in content["rows"] if row["judge"] == "the judge that grades"]
    cells = {(row["work"], row["load"], row["ratio"]) for row in ours}
    assert (loads := {load for _, load, _ in cells}) >= {"quiet", "busy"}
    assert len(cells) == len({row["work"] for row in ours}) * len(loads) * 4 >= 40
    assert {ratio for _, _, ratio in cells} == {0.8, 0.9, 1.1, 1.25}
    assert sum(row["verdicts"] for row in ours) >= 3000
    for row in ours:
        assert row["wrong"] == 0 and row["drawn_wrong"] < row["drawn"] / 1000 >= 1, row
        if row["ratio"] in (0.8, 1.25) and row["load"] != "bursts":
            assert row["drawn_undecided"] < row["drawn"] / 100, row
    assert len({row["work"] for row in content["same"]}) >= 12
    for row in content["same"]:  # gradings of identical code
        assert row["gradings"] >= 20 and row["wrong"] == 0, row
        low = 0.97 if row["work"] == "big results" else 0.98  # one call a block: its way is read only once
        assert 0.93 <= row["least"] <= row["most"] <= 1.07 and low <= row["median"] <= 1.02, row


def test_right_answers_kept_their_points_on_a_busy_machine():
    chapters = published("busy")["chapters"]
    assert set(chapters) == set(CHAPTERS)
    for found in chapters.values():
        assert found["gradings"] == 10
        assert found["load"] >= 13, found
        assert (found["less"], found["failed"], found["suspected"]) == ([], {}, []), found


def test_every_chapter_runs_in_what_binder_gives():
    content = published("binder")
    assert (content["cores"], content["memory_bytes"]) == (1, 2_000_000_000)
    assert set(content["chapters"]) == set(CHAPTERS)
    for found in content["chapters"].values():
        assert found["first_picture_s"] <= 90, found
        assert found["peak_bytes"] <= 2_000_000_000, found


def test_the_published_figures_for_a_class_keep_the_promises():
    content = published("grading")
    parts = ("without_races", "with_races", "large_class", "watched")
    alone, raced, large, watched = (content[part] for part in parts)
    assert alone["submissions"] >= 60 and alone["same_points"] and alone["times"] >= 20  # start included
    assert raced["submissions"] >= 300 and raced["times_the_races"] <= 1.3
    middle = [found for share, found in raced["time_left_announced"] if 0.1 <= share <= 0.9]
    assert len(middle) > 100 and all(1 / 1.5 <= found <= 1.5 for found in middle)
    assert large["graded"] == large["submissions"] >= 300
    assert large["megabytes_above_warm"] < 1100 and large["megabytes_grown"] < 50
    assert watched["an_hour"] >= 300 and watched["longest_s"] <= 60
    assert watched["graded"] == watched["handed_back"] == watched["submissions"] >= 60


@pytest.mark.parametrize("page", TIMES["SAID"])
def test_a_page_says_how_long_the_commands_take(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert TIMES["rewritten"](page, text, published("times")["words"]) == text, "run benchmarks/times.py"


def test_the_words_are_those_of_the_figures_and_help_says_them_too():
    times = published("times")
    assert TIMES["words"](times["figures"]) == times["words"]
    assert times["figures"].keys() <= TIMES["MOST"].keys()
    said = printed("make", "help-all", cwd=ROOT)
    for name in ("check", "test"):
        assert re.search(rf"^make {name} .*\({times['words'][name]}\)$", said, re.MULTILINE)


FILES = sorted((ROOT / "data/timings").glob("*.json"))
KNOWN = comparisons(ROOT / "course")
DEVICE = {
    "kind": "cuda", "name": "NVIDIA L4", "cores": 8, "system": "Linux x86_64", "python": "3.12.4",
    "torch": "2.11.0+cu128", "date": "2026-11-01", "cuda": "12.8", "cudnn": 91002, "driver": "570.86.15",
}  # fmt: skip
# On a GPU these take longer than what is around a kernel: 30 µs for a launch and a switch of cuDNN's.
KERNELS = (
    "a 3 × 3 convolution without and with the library",
    "max-pooling with the library switched off and on",
    "kernel: softmax of 32,768 rows in Triton",
)
TITLE = "cuDNN with fixed shapes: chosen by rule or by search"
TWO = {"rule": [2e-3] * 9, "search": [1e-3] * 9}
TIMING = {"claim": "A5", "clock": "cuda", "limit": None, "seconds": TWO}


def record(device: dict | None = None, **timing: object) -> dict:
    return {"device": DEVICE | (device or {}), "timings": {TITLE: copy.deepcopy(TIMING) | timing}}


def test_what_is_published_is_plausible_and_the_page_lists_it() -> None:
    contents = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES}
    found = {name: records.problems(content, KNOWN) for name, content in contents.items()}
    assert {name: problems for name, problems in found.items() if problems} == {}
    assert records.problems(record(), KNOWN) == []
    of_gpus = [content["timings"] for content in contents.values() if content["device"]["kind"] == "cuda"]
    taken = [timings[title]["seconds"].values() for timings in of_gpus for title in KERNELS]
    assert taken and min(min(seconds) for sides in taken for seconds in sides) > 30e-6
    written = (ROOT / "data/timings/README.md").read_text(encoding="utf-8")
    assert written == records.list_of_records(ROOT / "data/timings", ROOT / "course"), "run `make notebooks`"


def test_what_cannot_be_is_refused() -> None:
    for content, words in [
        ({"device": DEVICE}, "lacks `device` or `timings`"),
        (record({"kind": "tpu"}), "of kind 'tpu'"),
        (record({"torch": None}), "the device's torch is None"),
        (record({"date": (date.today() + timedelta(3)).isoformat()}), "of the future"),
        (record(clock="sundial"), "the clock is 'sundial'"),
        (record(seconds={"rule": [1.0] * 9, "search": [1.0]}), "at least 1 rounds"),
        (record(seconds={"rule": [1.0] * 9, "search": [0.0] * 9}), "a call took 0 to 1 s"),
        (record(seconds={"rule": [1.0] * 9, "search": [float("nan")] * 9}), "a call took"),
        (record(seconds={"rule": [10.0] * 9, "search": [1e-9] * 9}), "10,000,000,000 times as fast"),
        (record(seconds=[1, 2]), "lacks a clock or the seconds"),
        (record(processes=[4, 5]), "its processes have [4, 5] rounds"),
        ({"device": DEVICE, "timings": {"how tall I am": TIMING}}, "no chapter has a comparison"),
    ]:
        (found,) = records.problems(content, KNOWN)
        assert words in found


@pytest.mark.slow
def test_the_command_says_what_a_file_is(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    whole = record()
    titles = [one.title for one in KNOWN if one.only != "cpu"]
    whole["timings"] = {title.replace("…", "1"): TIMING for title in titles}
    file = tmp_path / "l4.json"

    def check(content: str, path=file) -> int:
        file.write_text(content, encoding="utf-8")
        return main(["record", "--check", str(path)])

    assert check(json.dumps(whole)) == 0 and "is whole and plausible" in capsys.readouterr().out
    assert check(json.dumps(record())) == 1
    assert "make record ARGS=05 adds them" in capsys.readouterr().err
    assert check("{") == check("{", tmp_path / "none.json") == 1
    assert capsys.readouterr().err.count("it cannot be read") == 2
