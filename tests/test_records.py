"""Records of timings from others: whether they are whole and plausible, and the page that lists them."""

import copy
import json
from datetime import date, timedelta

import pytest
from repository import ROOT

from autograder.__main__ import main
from autograder.authoring import records
from autograder.teaching.scripts import comparisons

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
    assert written.count("](") == len(FILES)


def test_what_cannot_be_is_refused() -> None:
    for content, words in [
        ({"device": DEVICE}, "lacks `device` or `timings`"),
        (record({"kind": "tpu"}), "of kind 'tpu'"),
        (record({"torch": None}), "the device's torch is None"),
        (record({"driver": ""}), "the device's driver is ''"),
        (record({"date": (date.today() + timedelta(3)).isoformat()}), "of the future"),
        (record(clock="sundial"), "the clock is 'sundial'"),
        (record(seconds={"rule": [1.0] * 9}), "1 variants"),
        (record(seconds={"rule": [1.0] * 9, "search": [1.0]}), "at least 1 rounds"),
        (record(seconds={"rule": [1.0] * 9, "search": [0.0] * 9}), "a call took 0 to 1 s"),
        (record(seconds={"rule": [1.0] * 9, "search": [float("nan")] * 9}), "a call took"),
        (record(seconds={"rule": [10.0] * 9, "search": [1e-9] * 9}), "10,000,000,000 times as fast"),
        (record(seconds=[1, 2]), "lacks a clock or the seconds"),
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

    assert check(json.dumps(whole)) == 0
    assert "is whole and plausible" in capsys.readouterr().out
    assert check(json.dumps(record())) == 1
    assert "make record ARGS=05 adds them" in capsys.readouterr().err
    assert check("{") == check("{", tmp_path / "none.json") == 1
    assert capsys.readouterr().err.count("it cannot be read") == 2
