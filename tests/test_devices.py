"""Devices of all kinds: small memories, limits of another day, records of a GPU."""

import ast
import math
import time
from typing import ClassVar

import pytest
import torch
from pretend_cuda import pretended_gpu
from repository import ROOT
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves

from autograder import costs, race
from autograder.measuring import limits
from autograder.measuring.clocks import run_block

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
        assert run_block(time.sleep, (0.01,), 1, "cuda").cuda > 0.009
