"""Devices of all kinds: small memories, limits of another day, records of a GPU."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from autograder import costs, race
from autograder.measuring import limits


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


@pytest.mark.skipif(torch.version.cuda is None, reason="this torch knows no CUDA device, not even a fake one")
def test_limits_are_measured_on_a_gpu_with_two_gigabytes(monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda *_: (1_500 << 20, 2 << 30))
    monkeypatch.setattr(limits, "_best", lambda function, device, calls: function() is None or 1e-3)
    with FakeTensorMode():
        taken = costs(limits.measure_rates, "cuda")
    assert taken.peak_bytes < 1_000 << 20
