"""GPUs that are announced: one that does not work is named, and never a traceback."""

import warnings
from collections.abc import Iterator

import pytest
import torch

from autograder import compare
from autograder.authoring.records import problems
from autograder.measuring import gpus
from autograder.measuring.clocks import devices
from autograder.measuring.device import provenance
from autograder.teaching.evidence import decides

P100 = "Tesla P100-PCIE-16GB"


@pytest.fixture(autouse=True)
def nothing_tried_yet() -> Iterator[None]:
    gpus._runs.cache_clear()
    yield
    gpus._runs.cache_clear()


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            "CUDA error: no kernel image is available for execution\nCUDA kernel",
            "this PyTorch has no code for it",
        ),
        ("CUDA error: all CUDA-capable devices are busy or unavailable", "another program has it for itself"),
        ("CUDA out of memory. Tried to allocate 2.00 MiB.", "its memory is full"),
        ("CUDA error: the launch timed out\nCUDA kernel errors might", "CUDA error: the launch timed out"),
    ],
)
def test_a_gpu_that_does_not_work_is_named_once_and_left_out(
    error: str, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ones = torch.ones

    def on_the_gpu_in_vain(*size: int, device: str = "cpu") -> torch.Tensor:
        if device == "cuda":
            raise RuntimeError(error)
        return ones(*size)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: P100)
    monkeypatch.setattr(torch, "ones", on_the_gpu_in_vain)
    with pytest.warns(UserWarning) as said:
        assert devices() == ["cpu"]
    assert [str(one.message) for one in said] == [f"The GPU {P100} is not used: {why}."]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sides = {"one": torch.sin, "other": torch.sin}
        compare("two sines", sides, inputs=lambda *_: torch.ones(9), seconds=0.05)
    assert "two sines" in capsys.readouterr().out


def test_amds_gpu_is_named_as_such_and_decides_nothing_about_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", "6.4.43482")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "AMD Instinct MI300X")
    device = provenance("cuda")
    assert device["rocm"] == "6.4.43482" and device.keys().isdisjoint({"cuda", "cudnn", "driver"})
    assert problems({"device": device, "timings": {}}, []) == []
    assert decides("D2", "cuda") and not decides("D2", "cuda", rocm=gpus.is_rocm())
    assert decides("A2", "cuda", rocm=gpus.is_rocm())
