"""GPUs that are announced: one that does not work is named, and never a traceback; what drivers know."""

import json
import os
import random
import time
import warnings
from functools import cache
from pathlib import Path

import pytest
import torch
from pretend_cuda import pretended_gpu
from repository import ROOT

from autograder import check, compare, costs, race
from autograder.authoring.records import problems
from autograder.measuring import device, gpus
from autograder.measuring.clocks import devices
from autograder.measuring.device import provenance
from autograder.measuring.duel import SHARED, TRY_LATER
from autograder.teaching.evidence import decides
from autograder.teaching.scripts import Cell

P100 = "Tesla P100-PCIE-16GB"


@pytest.fixture(autouse=True)
def nothing_tried_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOGRADER_SECONDS", "0")
    monkeypatch.setattr("autograder.judging.race.check_here", lambda: None)  # the machine may be busy
    for module, name in ((gpus, "_runs"), (device, "_told")):
        monkeypatch.setattr(module, name, cache(getattr(module, name).__wrapped__))


@pytest.mark.parametrize(
    ("error", "why"),
    [
        ("CUDA error: no kernel image is available for execution\nCUDA", "this PyTorch has no code for it"),
        ("CUDA error: all CUDA-capable devices are busy or unavailable", "another program has it for itself"),
        ("CUDA out of memory. Tried to allocate 2.00 MiB.", "its memory is full"),
        ("CUDA error: the launch timed out\nCUDA kernel errors might", "CUDA error: the launch timed out"),
    ],
)
def test_a_gpu_that_does_not_work_is_named_once_and_left_out(error, why, monkeypatch, capsys) -> None:
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


def test_a_gpu_with_too_little_memory_is_told_in_a_sentence(monkeypatch, capsys) -> None:
    def many(generator: torch.Generator, device: str) -> torch.Tensor:
        if device != "cpu":
            error = torch.OutOfMemoryError if device == "cuda" else RuntimeError
            raise error(f"{device.upper()} out of memory. Tried to allocate 3.00 GiB.")
        return some_rows(generator, device)

    with pretended_gpu("mps"):
        raced = race(torch.sin, against=torch.sin, on=many, at_least={"cpu": 2, "cuda": 2}, points=1)
        assert "Not timed on Apple's GPU: its memory is full." in raced.details
    with pretended_gpu():
        compare("norms", {"one": torch.sin, "other": torch.sin}, inputs=many, seconds=0.05)
        assert "Not measured on the GPU: its memory is full." in capsys.readouterr().out
        tried = check(torch.sin, like=torch.sin, on=many, points=1)
        monkeypatch.setenv("AUTOGRADER_DEVICES", "cuda")
        raced = race(torch.sin, against=torch.sin, on=many, at_least={"cuda": 2}, points=1)
    assert all(one.word == "error" and "GPU's memory is full" in one.summary for one in (tried, raced))


def test_amds_gpu_is_named_as_such_and_decides_nothing_about_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", "6.4.43482")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "AMD Instinct MI300X")
    facts = provenance("cuda")
    assert facts["rocm"] == "6.4.43482" and facts.keys().isdisjoint({"cuda", "cudnn", "driver"})
    assert problems({"device": facts, "timings": {}}, []) == []
    assert decides("D2", "cuda") and not decides("D2", "cuda", rocm=gpus.is_rocm())
    assert decides("A2", "cuda", rocm=gpus.is_rocm())


some_rows = lambda generator, device: torch.rand(200, 8, generator=generator).to(device)
norms_slow = lambda rows: torch.stack([row.norm() for row in rows])


def test_apples_gpu_is_measured_and_checked_and_no_ratio_is_asked_for_there() -> None:
    norms = {"loop": norms_slow, "one call": lambda rows: rows.norm(dim=1)}
    with pretended_gpu("mps"):
        assert devices() == ["cpu", "mps"]
        assert compare("norms", norms, inputs=some_rows, seconds=0.05).samples["mps"].clock == "mps"
        right = check(norms["one call"], like=norms_slow, on=some_rows, points=1)
        asked = {"cpu": 2, "cuda": 9}
        raced = race(norms["one call"], against=norms_slow, on=some_rows, at_least=asked, points=2)
        assert costs(norms_slow, some_rows(torch.Generator(), "mps")).operations.total() > 200
    assert (right.word, right.summary) == ("passed", "right in 4 cases.")
    assert raced.points == 2 and len(raced.facts["laps"]) == 1
    assert any("as fast as given on Apple's GPU" in line for line in raced.details)


def test_what_needs_float64_is_left_out_on_apples_gpu_and_that_is_said(capsys: pytest.CaptureFixture) -> None:
    wide = {"one": lambda rows: rows.double().sum(), "other": lambda rows: rows.sum(dtype=torch.float64)}
    with pretended_gpu("mps"):
        compare("sums", wide, inputs=some_rows, seconds=0.05)
        said = "Not measured on Apple's GPU: it has no float64."
        assert said in capsys.readouterr().out and said in (ROOT / "docs/devices.md").read_text("utf-8")
        found = check(wide["other"], like=wide["one"], on=some_rows, points=1)
    assert (found.word, found.summary) == ("passed", "right in 2 cases.")
    assert found.details == ("Not checked on Apple's GPU: it has no float64.",)


def test_a_record_of_a_mac_is_taken_and_until_then_its_reader_is_told(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("AUTOGRADER_RECORD", str(tmp_path))
    monkeypatch.setenv("AUTOGRADER_SECONDS", "0.1")
    monkeypatch.setattr("platform.mac_ver", lambda: ("15.5", ("", "", ""), "arm64"))
    with pretended_gpu("mps"):
        compare("sines", {"a": torch.sin, "b": torch.sin}, inputs=some_rows, only="mps", seconds=0.05)
    assert "was not tried on a Mac yet" in capsys.readouterr().out
    (record,) = map(Path.read_text, tmp_path.iterdir())
    assert problems(json.loads(record), [Cell("05_cudnn", 1, False, "sines")]) == []


def test_a_gpu_that_keeps_one_waiting_ends_no_race_with_a_traceback(monkeypatch, capsys) -> None:
    monkeypatch.setenv("AUTOGRADER_DEVICES", "cuda")
    waits = random.Random(1)
    asked = {"against": norms_slow, "on": some_rows, "at_least": {"cuda": 1.05}, "points": 1}
    with pretended_gpu():
        monkeypatch.setattr("torch.cuda.synchronize", lambda *_: time.sleep(waits.expovariate(100)))
        found = race(norms_slow, **asked)
        monkeypatch.setattr("autograder.measuring.duel.LONGEST_CALL", 1e-4)
        monkeypatch.setenv("AUTOGRADER_SECONDS", "0.1")
        never = race(norms_slow, **asked)
        monkeypatch.setattr("autograder.measuring.duel.LONGEST_CALL", 2.0)
        compare("norms", {"one": norms_slow, "other": norms_slow}, inputs=some_rows, seconds=0.1, claim="A5")
    assert found.word == "undecided" and found.points == never.points == 0
    assert found.summary == TRY_LATER and "can be timed here" in never.summary
    assert SHARED in capsys.readouterr().out


@pytest.mark.parametrize(
    ("said", "facts", "mode"),
    [
        ("580.159, 1980, 2619, Default", ("580.159", 1980, 2619), "Default"),
        ("550.54, [N/A], 2619, Exclusive_Process", ("550.54", None, 2619), "Exclusive_Process"),
        ("550.54, [Not Supported], [Unknown Error], [N/A]", ("550.54", None, None), None),
        ("540.3, N/A, N/A, Default", ("540.3", None, None), "Default"),
        ("No devices were found", (None, None, None), None),
        ("", (None, None, None), None),
    ],
)
def test_what_a_driver_does_not_know_is_left_out(said: str, facts, mode, tmp_path, monkeypatch) -> None:
    (tmp_path / "nvidia-smi").write_text(f'#!/bin/sh\necho asked >>"$0.log"\necho "{said}"\n')
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    known = zip(("driver", "clock_mhz", "memory_clock_mhz"), facts, strict=True)
    assert device._driver("cuda") == {name: fact for name, fact in known if fact is not None}
    assert device.compute_mode("cuda") == device.compute_mode("cuda:0") == mode
    assert (tmp_path / "nvidia-smi.log").read_text() == "asked\n"
