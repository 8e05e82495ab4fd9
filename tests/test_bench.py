import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
KEYS = {"judge", "work", "load", "ratio", "verdicts", "wrong", "undecided", "median_s", "p95_s"}
OURS = "the judge that grades"
DRAWN = {"launches", "drawn", "drawn_wrong", "drawn_undecided", "measured"}
NOTICED = {"strays", "thrown_away", "signs_only", "put_off"}


@pytest.mark.machine
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="launches need Linux")
def test_a_quick_benchmark_of_the_judges_writes_its_table_and_chart(tmp_path):
    table, chart = tmp_path / "judge.json", tmp_path / "judge.png"
    command = [sys.executable, "benchmarks/judge.py", "--quick", "--output", table, "--chart", chart]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    content = json.loads(table.read_text())
    assert content.keys() == {"machine", "processors", "date", "rows", "same"}
    ours = [row for row in content["rows"] if row["judge"] == OURS]
    assert all(row.keys() == KEYS | DRAWN | NOTICED for row in ours)
    assert all(row.keys() == KEYS for row in content["rows"] if row not in ours)
    assert len({row["judge"] for row in content["rows"]}) == 5
    assert len({row["work"] for row in ours}) == 5
    assert chart.read_bytes().startswith(b"\x89PNG")
    assert sum(row["wrong"] for row in [*ours, *content["same"]]) == 0
    assert len(content["same"]) >= 12


def test_the_published_table_keeps_the_promise():
    content = json.loads((ROOT / "data" / "judge.json").read_text())
    ours = [row for row in content["rows"] if row["judge"] == OURS]
    cells = {(row["work"], row["load"], row["ratio"]) for row in ours}
    loads = {load for _, load, _ in cells}
    assert loads >= {"quiet", "busy"}
    assert len(cells) == len({row["work"] for row in ours}) * len(loads) * 4 >= 40
    assert {ratio for _, _, ratio in cells} == {0.8, 0.9, 1.1, 1.25}
    assert sum(row["verdicts"] for row in ours) >= 2000
    assert [row for row in ours if row["wrong"]] == []
    for row in ours:
        assert row["drawn"] >= 1000
        assert row["drawn_wrong"] < row["drawn"] / 1000, row
        if row["ratio"] in (0.8, 1.25) and row["load"] != "bursts":
            assert row["drawn_undecided"] < row["drawn"] / 100, row


def test_the_published_gradings_of_identical_code_keep_the_promise():
    same = json.loads((ROOT / "data" / "judge.json").read_text())["same"]
    assert len({row["work"] for row in same}) >= 12
    for row in same:
        assert row["gradings"] >= 20, row
        assert row["wrong"] == 0, row
        assert 0.93 <= row["least"] <= row["most"] <= 1.07, row
        assert 0.98 <= row["median"] <= 1.02, row


def test_right_answers_kept_their_points_on_a_busy_machine():
    chapters = json.loads((ROOT / "data" / "busy.json").read_text())["chapters"]
    assert set(chapters) == {path.stem for path in (ROOT / "course").glob("[0-9]*.py")}
    for found in chapters.values():
        assert found["gradings"] == 10
        assert found["load"] >= 13, found
        assert (found["less"], found["failed"], found["suspected"]) == ([], {}, []), found


def test_every_chapter_runs_in_what_binder_gives():
    content = json.loads((ROOT / "data" / "binder.json").read_text())
    assert (content["cores"], content["memory_bytes"]) == (1, 2_000_000_000)
    assert set(content["chapters"]) == {path.stem for path in (ROOT / "course").glob("[0-9]*.py")}
    for found in content["chapters"].values():
        assert found["first_picture_s"] <= 90, found
        assert found["peak_bytes"] <= 2_000_000_000, found


def test_eight_races_at_once_gave_most_verdicts_in_the_simulation_and_no_wrong_one():
    rows = json.loads((ROOT / "data" / "side_by_side.json").read_text())["simulated"]
    assert sum(row["verdicts"] for row in rows) >= 50_000
    assert sum(row["wrong"] for row in rows) == 0
    for machine in {(row["filled_by"], row["work"]) for row in rows if row["filled_by"] >= 4}:
        mine = [row for row in rows if (row["filled_by"], row["work"]) == machine]
        best = max(mine, key=lambda row: row["verdicts_a_minute"])
        assert best["races_at_once"] == 8
        assert best["undecided"] < best["verdicts"] / 100


def test_the_published_figures_for_a_class_keep_the_promises():
    content = json.loads((ROOT / "data" / "grading.json").read_text())
    alone, raced, large, watched = (
        content[part] for part in ("without_races", "with_races", "large_class", "watched")
    )
    assert alone["submissions"] >= 60
    assert alone["same_points"]
    assert alone["times"] >= 7  # start included; of a second each, the tests' own work takes seven tenths
    assert raced["submissions"] >= 300
    assert raced["times_the_races"] <= 1.3
    middle = [found for share, found in raced["time_left_announced"] if 0.1 <= share <= 0.9]
    assert len(middle) > 100 and all(1 / 1.5 <= found <= 1.5 for found in middle)
    assert large["graded"] == large["submissions"] >= 300
    assert large["megabytes_above_warm"] < 1100
    assert large["megabytes_grown"] < 50
    assert watched["an_hour"] >= 300
    assert watched["graded"] == watched["handed_back"] == watched["submissions"] >= 60
    assert watched["longest_s"] <= 60
