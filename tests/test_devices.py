"""Devices that are not here: small memories, limits of another day, queued commands, a GPU's record."""

import json
import shutil
from functools import cache
from itertools import cycle
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from pretend_cuda import pretended_gpu
from repository import ROOT
from torch._subclasses.fake_tensor import FakeTensorMode

from autograder import costs, race
from autograder.measuring import clocks, limits, store
from autograder.measuring.duel import Ratio
from autograder.teaching import recordings, remember, scoreboard
from autograder.teaching.chart import draw_scores
from autograder.teaching.claims import CLAIMS
from autograder.teaching.evidence import Evidence, holds, judge
from autograder.teaching.scripts import comparisons


def test_an_answer_is_beyond_a_limit_only_where_that_is_measured_anew(monkeypatch, tmp_path) -> None:
    """What was kept may be of a day on battery."""
    slow, fast = (
        {"bytes_per_second": [[size, speed] for size in limits.SIZES], "flops_per_second": speed}
        for speed in (1.0, 1e15)
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(limits, "rates", cache(lambda *_: slow))
    monkeypatch.setattr(limits, "measure_rates", lambda *_: fast)
    inputs = lambda generator, device: torch.rand(300, generator=generator)
    given = lambda x: torch.stack([one * 2 for one in x])
    monkeypatch.setattr("autograder.judging.race.check_here", lambda: None)  # the machine may be busy
    outcome = race(lambda x: x * 2, against=given, on=inputs, at_least={"cpu": 2}, points=3, bytes=2400)
    assert outcome.points == 3
    assert store.read(limits.kept_as("cpu", 1)) == fast


@pytest.mark.skipif(torch.version.cuda is None, reason="this torch knows no CUDA device")
def test_limits_are_measured_on_a_gpu_with_two_gigabytes(monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda *_: (1_500 << 20, 2 << 30))
    monkeypatch.setattr(limits, "_best", lambda function, device, calls: function() is None or 1e-3)
    with FakeTensorMode():
        assert costs(limits.measure_rates, "cuda").peak_bytes < 1_000 << 20


def test_commands_are_sent_before_the_work_begins(monkeypatch) -> None:
    """Windows queues them; without that, a side without work for the GPU takes no time at all."""
    done = Mock(elapsed_time=lambda end: 1.0)
    with pretended_gpu():
        monkeypatch.setattr("torch.cuda.Event", lambda **_: done)
        clocks.run_block(done.work, (), 1, "cuda")
    assert [call[0] for call in done.mock_calls] == ["record", "query", "work", "record"]


def test_a_profile_without_a_kernel_is_idle_and_each_gpu_has_a_cache_of_its_own(monkeypatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "course")
    from parts.overhead import busy

    assert busy([]) == 0
    caches = {0: torch.ones(1), 1: torch.ones(1)}
    monkeypatch.setattr(clocks, "_l2_scratch", caches)
    monkeypatch.setattr("torch.cuda.current_device", lambda: 1)
    clocks.flush_cache("cuda:0")
    assert (caches[0], caches[1]) == (0, 1)


@pytest.mark.parametrize("ratios", [[3.0], [0.3], [3.0, 0.3], [0.3, 3.0], [0.3, 1.0, 3.0]], ids=str)
def test_whatever_gpus_give_the_score_page_is_built(ratios: list[float], tmp_path: Path) -> None:
    """Their ratios may contradict every condition."""
    shutil.copytree(recordings.TIMINGS, tmp_path / "timings")
    others = cycle(ratios)
    timings = {
        cell.title.replace("…", "7"): {"clock": "cuda", "seconds": {"a": [next(others)] * 9, "b": [1.0] * 9}}
        for cell in comparisons(ROOT / "course")
        if cell.claim and cell.only != "cpu"
    }
    for name in ("NVIDIA H100", "Tesla T4"):
        device = {"kind": "cuda", "name": name, "torch": "2.15.0", "date": "2026-11-01"}
        content = json.dumps({"device": device, "timings": timings})
        (tmp_path / "timings" / f"{name}.json").write_text(content)
    found = scoreboard.findings(timings=tmp_path / "timings")
    said = "\n".join([scoreboard.summary(found), *(judge(claim, found).rule for claim in CLAIMS)])
    assert "On a GPU, when" in said and "No GPU was measured yet" not in said
    remember.with_three(f"{remember.BEGIN}\n{remember.END}", found)
    draw_scores(scoreboard._timed(found))


def test_verdicts_say_for_which_kind_of_device_they_are() -> None:
    def measured(ratio: float, on: str) -> Evidence:
        figure = Ratio(ratio, ratio, ratio)
        return Evidence("A3", "add", "timing", holds("A3", figure), device=on, on=on, ratio=figure)

    here, use = measured(2, "cpu"), CLAIMS["A3"].use
    same, other = (judge("A3", [here, measured(ratio, "cuda")]) for ratio in (4, 0.5))
    assert (same.word, other.word) == ("holds", "holds when …")
    assert same.rule == f"On a CPU, when {use}: 2×. On a GPU, when {use}: 4×."
    apart = judge("A3", [here, measured(0.5, "cuda"), measured(2, "cuda")])
    assert apart.rule.endswith("0.5× to 2×; on what it depends is not known.")
