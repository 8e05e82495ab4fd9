"""Devices of all kinds: small memories, limits of another day, records of a GPU."""

import ast
import itertools
import json
import math
import shutil
import time
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from pretend_cuda import PROPERTIES, pretended_gpu
from repository import ROOT
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves

from autograder import costs, race
from autograder.measuring import limits
from autograder.measuring.clocks import flush_cache, run_block
from autograder.measuring.duel import Ratio
from autograder.teaching import recordings, scoreboard
from autograder.teaching.chart import draw_scores
from autograder.teaching.claims import CLAIMS
from autograder.teaching.evidence import Evidence, holds, judge

needs_fake_gpu = pytest.mark.skipif(
    torch.version.cuda is None, reason="this torch knows no CUDA device at all"
)


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    limits.rates.cache_clear()
    yield
    limits.rates.cache_clear()


def test_an_answer_is_beyond_a_limit_only_where_that_is_measured_anew(own_cache, monkeypatch) -> None:
    """What was kept may be of a day on battery."""
    speeds = [1.0, 1e15]

    def measured(device: str, num_threads: int) -> dict[str, object]:
        speed = speeds.pop(0)
        return {"bytes_per_second": [[size, speed] for size in limits.SIZES], "flops_per_second": speed}

    monkeypatch.setattr(limits, "measure_rates", measured)
    limits.rates("cpu", 1)
    asked = {
        "on": lambda generator, device: torch.rand(300, generator=generator),
        "at_least": {"cpu": 2},
        "points": 3,
    }
    for _ in range(2):  # the better one is kept
        outcome = race(
            lambda x: x * 2, against=lambda x: torch.stack([one * 2 for one in x]), bytes=2400, **asked
        )
        assert (outcome.word, outcome.points) == ("passed", 3)
    limits.rates.cache_clear()
    assert limits.limit(bytes=2400) < 1e-9


@needs_fake_gpu
def test_limits_are_measured_on_a_gpu_with_two_gigabytes(monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda *_: (1_500 << 20, 2 << 30))
    monkeypatch.setattr(limits, "_best", lambda function, device, calls: function() is None or 1e-3)
    with FakeTensorMode():
        taken = costs(limits.measure_rates, "cuda")
    assert taken.peak_bytes < 1_000 << 20


@needs_fake_gpu
@pytest.mark.parametrize(
    ("chapter", "title"),
    [
        ("05_cudnn", "a 3 × 3 convolution without and with the library"),
        ("05_cudnn", "max-pooling with the library switched off and on"),
        ("19_first_kernel", "kernel: softmax of 32,768 rows in Triton"),
    ],
)
def test_a_kernel_that_is_timed_on_a_gpu_takes_longer_than_what_is_around_it(
    chapter: str, title: str
) -> None:
    """Twice what the L2 cache of an H100 holds takes 30 µs; a launch and a switch of cuDNN's take less."""
    calls = [
        {keyword.arg: keyword.value for keyword in node.keywords}
        for node in ast.walk(ast.parse((ROOT / "course" / f"{chapter}.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.args[0]) == repr(title)
    ]
    inputs = eval(compile(ast.Expression(calls[0]["inputs"]), chapter, "eval"), {"torch": torch})
    with FakeTensorMode():
        made = tree_leaves(inputs(torch.Generator(), "cuda"))
    assert sum(tensor.nbytes for tensor in made) > 2 * 50e6


class Lazy:
    """A CUDA event on Windows: what is recorded is sent when somebody asks for it."""

    recorded: ClassVar[list["Lazy"]] = []

    def __init__(self, enable_timing: bool) -> None:
        self.at = math.nan

    def record(self) -> None:
        self.recorded.append(self)

    def query(self) -> None:
        while self.recorded:
            self.recorded.pop().at = time.perf_counter()

    def elapsed_time(self, end: "Lazy") -> float:
        return 1e3 * (end.at - self.at)


def test_what_waits_without_the_gpu_takes_its_time_where_commands_are_queued(monkeypatch) -> None:
    with pretended_gpu():
        monkeypatch.setattr("torch.cuda.Event", Lazy)
        monkeypatch.setattr("torch.cuda.synchronize", lambda device: Lazy(True).query())
        assert run_block(time.sleep, (0.01,), 1, "cuda").gpu > 0.009


@pytest.fixture(params=[[3.0], [0.3], [3.0, 0.3], [0.3, 3.0], [0.3, 1.0, 3.0]], ids=str)
def records_of_gpus(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The records that there are, and two GPUs', whose ratios may contradict every condition."""
    shutil.copytree(recordings.TIMINGS, tmp_path / "timings")
    ratios = itertools.cycle(request.param)
    timings = {
        cell.title.replace("…", "7"): {"clock": "cuda", "seconds": {"a": [next(ratios)] * 9, "b": [1.0] * 9}}
        for cell in scoreboard.cells()
        if cell.only != "cpu"
    }
    for name in ("NVIDIA H100", "Tesla T4"):
        device = {"kind": "cuda", "name": name, "torch": "2.15.0", "date": "2026-11-01"}
        content = json.dumps({"device": device, "timings": timings})
        (tmp_path / "timings" / f"{name}.json").write_text(content)
    return tmp_path / "timings"


def test_whatever_a_gpu_gives_the_score_page_is_built(records_of_gpus: Path) -> None:
    found = scoreboard.findings(timings=records_of_gpus)
    readme = scoreboard.with_scores(f"{scoreboard.BEGIN}\n{scoreboard.END}", found)
    assert "No GPU was measured yet" not in readme
    assert "On a GPU, when" in readme
    draw_scores(scoreboard._dots(found), scoreboard._devices(found))


def test_verdicts_say_for_which_kind_of_device_they_are() -> None:
    def evidence(ratio: float, on: str) -> Evidence:
        figure = Ratio(ratio, ratio, ratio)
        return Evidence("A3", "add", "timing", holds("A3", figure), device=on, on=on, ratio=figure)

    same, other = ([evidence(2, "cpu"), evidence(ratio, "cuda")] for ratio in (4, 0.5))
    use = CLAIMS["A3"].use
    assert judge("A3", same).word == "holds"
    assert judge("A3", same).rule == f"On a CPU, when {use}: 2×. On a GPU, when {use}: 4×."
    assert judge("A3", other).word == "holds when …"
    assert judge("A3", [*other, evidence(2, "cuda")]).rule.endswith(
        "0.5× to 2×; on what it depends is not known."
    )


def test_a_profile_without_a_kernel_is_idle_and_each_gpu_has_its_own_scratch(monkeypatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "course")
    from parts.overhead import busy

    assert busy([]) == 0
    monkeypatch.setattr("torch.cuda.current_device", lambda: 1)
    asked = []
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda index: asked.append(index) or PROPERTIES)
    with FakeTensorMode():
        for device in ("cuda:0", "cuda"):
            monkeypatch.setattr("autograder.measuring.clocks._l2_scratch", {})
            flush_cache(device)
    assert asked == [0, 1]
