"""What is said of a device, where its driver does not know all."""

import os
from pathlib import Path

import pytest

from autograder.measuring import device

TOOL = """#!/bin/sh
echo asked >>"$0.log"
echo "ANSWER"
"""


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put an ``nvidia-smi`` that gives this answer in front of all others; gives its log."""

    def put(text: str) -> Path:
        tool = tmp_path / "nvidia-smi"
        tool.write_text(TOOL.replace("ANSWER", text))
        tool.chmod(0o755)
        device._told.cache_clear()
        return tool.with_suffix(".log")

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    yield put
    device._told.cache_clear()


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
def test_what_a_driver_does_not_know_is_left_out(answer, said, facts, mode) -> None:
    answer(said)
    known = zip(("driver", "clock_mhz", "memory_clock_mhz"), facts, strict=True)
    assert device._driver("cuda") == {name: fact for name, fact in known if fact is not None}
    assert device.compute_mode("cuda") == mode


def test_the_driver_is_asked_once_a_process(answer) -> None:
    log = answer("580.159, 1980, 2619, Default")
    for name in ("cuda", "cuda:0"):
        device._driver(name)
        device.compute_mode(name)
    assert log.read_text() == "asked\n"
