"""``make gpu``, rehearsed with the CPU in the GPU's place."""

import json
import shutil
from pathlib import Path

import pytest
from repository import ROOT

from autograder.__main__ import main as command
from autograder.authoring import records
from autograder.files import write_whole
from autograder.gpu import device_judge
from autograder.gpu.command import JUDGES, main

CHAPTER = """# %%
from autograder import compare

numbers = lambda generator, device: WHAT.rand(9, generator=generator).to(device)
compare("two ways", {"one": lambda x: x * 2, "other": lambda x: x + x}, inputs=numbers)

# %%
assert 1 == 1
"""
EXERCISES = """# %% id="setup" role="given"
import torch
from autograder import check, race

# %% id="twice_given" role="given"
def twice_slow(x):
    return torch.stack([2 * one for one in x])

def numbers(generator, device):
    return torch.rand(300, generator=generator).to(device)

# %% id="twice" role="answer"
def twice(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION

# %% id="twice_check" role="test"
check(twice, like=twice_slow, on=numbers, points=1)

# %% id="twice_race" role="test"
race(twice, against=twice_slow, on=numbers, at_least={"cpu": 3, "cuda": 3}, points=1)
"""


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of one chapter, which fails, and one solution."""
    folder = tmp_path / "a course"
    for name, text in {"course/01_twice.py": CHAPTER, "solutions/01_twice/01_twice.py": EXERCISES}.items():
        write_whole(folder / name, text)
    shutil.copy(ROOT / "pyproject.toml", folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # On a busy CPU a call that does nothing may take as long as one that works; and each race takes seconds.
    monkeypatch.setattr(device_judge, "FEWEST_TIMES", 0)
    for name, (verdict, _) in JUDGES.items():
        monkeypatch.setitem(JUDGES, name, (verdict, 1))
    return folder


@pytest.mark.slow
def test_all_steps_with_the_cpu_in_its_place(course: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    call = ["--out", str(out), "--device", "cpu", "--minutes", "10"]
    assert main(call) == 1
    said = capsys.readouterr().out
    found = {step: json.loads((out / f"{step}.json").read_text()) for step in ("branches", "ratios")}
    (error,) = found["branches"]["course/01_twice.py"]["errors"]
    assert "cell-0" in error["cell"] and "4: compare(" in error["line"] and "WHAT" in error["error"]
    assert "NameError" in said, "an error is told at once"
    (race,) = found["ratios"]["solutions/01_twice/01_twice.py"]["races"]
    assert race["laps"][0]["device"] == "cpu" and race["laps"][0]["ratio"] > 3
    page = (out / "report.md").read_text(encoding="utf-8")
    assert "What failed: 2 in 4 runs" in page, "the chapter fails where it is tried and where it is recorded"
    assert "twice_race" in page and "GB/s" in page and page.count("| busy | 1.25 | 1 |") == 2

    # The chapter is mended: only that is done again.
    mended = CHAPTER.replace("WHAT", "__import__('torch')")
    (course / "course" / "01_twice.py").write_text(mended, encoding="utf-8")
    steps = [out / f"{step}.json" for step in ("ratios", "limits", "judge", "apart")]
    before = [step.stat().st_mtime_ns for step in steps]
    assert main(call) == 0
    assert before == [step.stat().st_mtime_ns for step in steps]
    (record,) = (out / "timings").glob("*.json")
    content = json.loads(record.read_text(encoding="utf-8"))
    assert list(content["timings"]) == ["two ways"]
    assert records.problems(content, records.comparisons(course / "course")) == []


@pytest.mark.slow
def test_what_no_time_was_left_for_is_done_by_the_next_call(course: Path, tmp_path: Path, capsys) -> None:
    (course / "course" / "01_twice.py").write_text("# %%\nimport time\n\ntime.sleep(60)\n", encoding="utf-8")
    out = tmp_path / "out"
    steps = ["--only", "recordings,branches"]
    assert main(["--out", str(out), "--device", "cpu", "--minutes", "0.2", *steps]) == 1
    assert "course/01_twice.py: no time was left" in capsys.readouterr().out
    assert not (out / "recordings.json").exists()


def test_without_a_gpu_it_says_so_and_nonsense_is_refused(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert command(["gpu", "--out", str(tmp_path / "out")]) == 1
    assert "there is no cuda device here" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    with pytest.raises(SystemExit):
        main(["--only", "races"])
    assert "no step is called 'races'" in capsys.readouterr().err


@pytest.mark.slow  # two processes that load torch
def test_a_convolution_has_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "course")
    from parts.convolving import Convolving

    good = Convolving((1, 3, 8, 8), (2, 3, 3, 3), benchmark=True, device="cpu")
    good()
    good()
    good.close()
    bad = Convolving((1, 3, 8, 8), (2, 4, 3, 3), benchmark=False, device="cpu")
    with pytest.raises(RuntimeError, match="ended with code 1"):
        bad()
    bad.close()
