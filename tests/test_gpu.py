"""``make gpu``, rehearsed with the CPU in the GPU's place; and on a rented machine.

That has few packages, and each command is killed at its limit. A command starts in a folder with what git
tracks and what is carried, and only what lies in its folder ``OUT`` comes back: at most 8 files of 16 MiB.
"""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import smoke
from gpu_run import JUDGES, Run, _all_items, _do, _facts, _one, _settings, main
from known_work import CHAPTER, EXERCISES
from packaging.utils import canonicalize_name
from programs import PATIENCE, environment, git, run
from repository import COURSE, ROOT, SOLUTIONS, copy_files, with_what_they_need
from wheels import NEEDED

from autograder.authoring import records
from autograder.files import write_whole
from autograder.gpu import device_judge
from autograder.judging.calls import AnswerError
from autograder.measuring.duel import DuelError


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of one chapter, which fails, and one solution."""
    folder = tmp_path / "a course"
    fails = CHAPTER.replace("torch.rand", "WHAT.rand")
    for name, text in {"course/05_twice.py": fails, "solutions/01_twice/01_twice.py": EXERCISES}.items():
        write_whole(folder / name, text)
    shutil.copy(ROOT / "pyproject.toml", folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # On a busy CPU a call that does nothing may take as long as one that works; and each race takes seconds.
    monkeypatch.setattr(device_judge, "FEWEST_TIMES", 0)
    monkeypatch.setattr(device_judge, "MOST_LAUNCHES", 2)
    for name, (verdict, _) in JUDGES.items():
        monkeypatch.setitem(JUDGES, name, (verdict, 1))
    return folder


def kept(course: Path, step: str) -> dict:
    (path,) = (course / "build" / "gpu").glob(f"*/{step}.json")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_all_steps_with_the_cpu_in_its_place(course: Path, tmp_path: Path, capsys) -> None:
    call = ["--out", str(tmp_path / "out"), "--device", "cpu", "--minutes", "20"]
    assert main(call) == 1
    said = capsys.readouterr().out
    (error,) = kept(course, "branches")["course/05_twice.py"]["errors"]
    assert "cell-0" in error["cell"] and "5: compare(" in error["line"] and "WHAT" in error["error"]
    assert "NameError" in said, "an error is told at once"
    assert "branches: 1 failed: course/05_twice.py" in said and "recordings: 1 failed" in said
    (race,) = kept(course, "ratios")["solutions/01_twice/01_twice.py"]["races"]
    assert race["laps"][0]["device"] == "cpu" and race["laps"][0]["ratio"] > 3
    assert {"0.8 race 0", "1.25 race 0"} < kept(course, "judge").keys() == kept(course, "apart-busy").keys()
    (folder,) = (course / "build" / "gpu").iterdir()
    page = (folder / "report.md").read_text(encoding="utf-8")
    assert "| branches | course/05_twice.py |" in page and "| recordings | course/05_twice.py |" in page
    assert "twice_race" in page and "GB/s" in page and page.count("| busy | 1.25 | 1 |") == 2
    assert list((folder / "cache").rglob("rates-*.json")), "the limits that notebooks look at travel along"

    # The chapter is mended: only that is done again, by a machine that has nothing but the archive.
    before = {path.name: path.read_text() for path in folder.glob("*.json")}
    (course / "course" / "05_twice.py").write_text(CHAPTER, encoding="utf-8")
    shutil.rmtree(course / "build")
    (course / "build").mkdir()
    (tmp_path / "out" / "gpu.tar.gz").rename(course / "build" / "gpu.tar.gz")
    assert main(call) == 0
    after = {path.name: path.read_text() for path in folder.glob("*.json")}
    changed = {name for name in after if before[name] != after[name]}
    assert changed - {"smoke.json"} == {"branches.json", "recordings.json"}
    (record,) = (folder / "timings").glob("*.json")
    content = json.loads(record.read_text(encoding="utf-8"))
    assert list(content["timings"]) == ["two ways"]
    assert records.problems(content, records.comparisons(course / "course")) == []
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["gpu.tar.gz"]


@pytest.mark.slow
def test_what_no_time_was_left_for_is_done_by_the_next_call(course: Path, tmp_path: Path, capsys) -> None:
    (course / "course" / "05_twice.py").write_text("# %%\nimport time\n\ntime.sleep(60)\n", encoding="utf-8")
    steps = ["--only", "recordings,branches"]
    assert main(["--out", str(tmp_path / "out"), "--device", "cpu", "--minutes", "0.2", *steps]) == 1
    said = capsys.readouterr().out
    assert "course/05_twice.py: no time was left" in said
    assert "The same call again does what is left:\n  branches: " in said
    assert "recordings: 1 missing: course/05_twice.py" in said
    assert not list((course / "build").rglob("recordings.json"))


@pytest.mark.slow
def test_a_race_that_the_machine_is_too_noisy_for_is_told(course: Path, tmp_path: Path) -> None:
    noisy = "from autograder.measuring import selfcheck\nselfcheck.MOST_NOISE = -1\n"
    script = course / "solutions/01_twice/01_twice.py"
    script.write_text(EXERCISES.replace("import torch\n", f"import torch\n{noisy}"), encoding="utf-8")
    found = _one(run_of(course, tmp_path, "the CPU", "cpu"), "ratios", "solutions/01_twice/01_twice.py")
    assert found and "this machine is too noisy" in found["errors"][0]["error"]


def run_of(course: Path, tmp_path: Path, name: str, device: str = "cuda") -> Run:
    (tmp_path / "out").mkdir(exist_ok=True)
    return Run(course, tmp_path / "out", device, {"name": name}, time.monotonic() + 60)


def test_limits_come_first_and_then_what_is_worth_most(course: Path, tmp_path: Path, monkeypatch) -> None:
    for path in COURSE:
        (course / "course" / path.name).touch()
    done: dict[str, list[str]] = {}
    monkeypatch.setattr("gpu_run.AT_ONCE", {})
    note = lambda run, step, item: done.setdefault(step, []).append(Path(item).stem[:2])
    monkeypatch.setattr("gpu_run._one", note)
    assert main(["--out", str(tmp_path / "out"), "--device", "cpu"]) == 1
    assert list(done)[:5] == ["smoke", "limits", "branches", "recordings", "ratios"]
    assert list(dict.fromkeys(done["recordings"])) == ["05", "04", "18", "15", "19", "02", "17"]
    assert done["others"][0] == "07" and done["others"][-2:] == ["08", "13"]
    run = run_of(course, tmp_path, "NVIDIA H100")
    branches, recording = (_settings(run, step, "course/05.py") for step in ("branches", "recordings"))
    assert not Path(branches["XDG_CACHE_HOME"]).is_relative_to(run.folder)
    assert recording["AUTOGRADER_SECONDS"] == "cpu=0"


def test_two_devices_do_not_mix(course: Path, tmp_path: Path) -> None:
    first, second = (run_of(course, tmp_path, f"NVIDIA {name}") for name in ("H100 80GB HBM3", "H200"))
    first.keep("limits", "rates", {"errors": [{"cell": "", "line": "", "error": "none"}]})
    second.keep("judge", "0.8 race 0", {"errors": [], "word": "slower", "seconds": 1.0})
    assert second.kept("limits") == {} == first.kept("judge") and len(first.kept("limits")) == 1
    with tarfile.open(tmp_path / "out" / "gpu.tar.gz") as archive:
        names = archive.getnames()
    assert {"./nvidia-h100-80gb-hbm3/limits.json", "./nvidia-h200/judge.json"} < set(names)


@pytest.mark.parametrize("error", [DuelError, AnswerError])
def test_a_race_that_is_refused_is_an_outcome(course: Path, tmp_path: Path, monkeypatch, error) -> None:
    def refuses(device: str, ratio: float) -> str:
        if ratio == 1.1:
            raise error(*(["failed"] if error is AnswerError else []), "too little to be judged")
        return "slower"

    monkeypatch.setitem(JUDGES, "apart", (refuses, 2))
    run = run_of(course, tmp_path, "NVIDIA H100")
    _do(run, "apart", _all_items(run, "apart"))
    assert [run.kept("apart")[f"1.1 race {race}"]["word"] for race in (0, 1)] == ["refused"] * 2
    page = (run.folder / "report.md").read_text(encoding="utf-8")
    assert "| quiet | 0.8 | 2 | 0 | 0 | 0 |" in page and "| quiet | 1.1 | 2 | 0 | 0 | 2 |" in page
    assert "| quiet | 1.25 | 2 | 2 | 0 | 0 |" in page


def test_whatever_breaks_or_hangs_the_rest_goes_on(course: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    def breaks(device: str, ratio: float) -> str:
        if ratio < 1:
            raise RuntimeError("CUDA error: unspecified launch failure")
        return "faster"

    monkeypatch.setitem(JUDGES, "judge", (breaks, 1))
    run = run_of(course, tmp_path, "NVIDIA H100")
    _do(run, "judge", _all_items(run, "judge"))
    assert [bool(found["errors"]) for found in run.kept("judge").values()] == [True, True, False, False]
    assert "RuntimeError: CUDA error: unspecified launch failure" in capsys.readouterr().out
    with monkeypatch.context() as patched:
        patched.setattr("gpu_run.MOST_SECONDS", 0.1)
        found = _one(run, "limits", "rates")
    assert found and found["errors"][0]["error"] == "it took more than 0 s"
    monkeypatch.setattr("gpu_run.provenance", lambda device: 1 / 0)
    assert _facts("cuda")["name"] == "cuda"
    # Nor does a whole step end the run.
    monkeypatch.setattr("speed_judge._BUSY", "raise SystemExit")
    monkeypatch.setitem(JUDGES, "apart", (breaks, 1))
    assert main(["--out", str(run.out), "--device", "cpu", "--only", "judge-busy,apart"]) == 1
    said = capsys.readouterr()
    assert "could not use the device" in said.err and "judge-busy: 4 missing" in said.out
    assert "apart: 2 failed: 0.8 race 0, 0.9 race 0" in said.out


def test_a_device_for_one_process_alone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoke, "compute_mode", lambda device: "Exclusive_Process")
    with pytest.raises(RuntimeError, match="compute mode is Exclusive_Process: branches fail"):
        smoke.CHECKS["two processes"][0]("cuda")


@pytest.mark.slow
def test_what_hangs_or_fails_in_the_smoke_test_is_told(course, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(smoke, "SECONDS", 0.1)
    run = run_of(course, tmp_path, "NVIDIA H100")
    _do(run, "smoke", ["kernel"])
    assert "this hinders all that is on the device: it took more than 0 s" in capsys.readouterr().out
    monkeypatch.setattr(smoke, "SECONDS", 60)
    monkeypatch.setattr("gpu_run.smoke.CHECKS", {"nonsense": (None, "nothing")})
    _do(run, "smoke", ["nonsense"])
    assert "this hinders nothing: TypeError" in capsys.readouterr().out


def test_a_damaged_archive_is_told(course: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    found = {"errors": [], "word": "slower", "seconds": 1}
    run_of(course, tmp_path, "NVIDIA H100").keep("judge", "1.1 race 0", found)
    whole = (tmp_path / "out" / "gpu.tar.gz").read_bytes()
    shutil.rmtree(course / "build" / "gpu")
    for damaged in (b"", whole[: len(whole) // 2], whole[:60] + b"x" * 60 + whole[120:]):
        (course / "build" / "gpu.tar.gz").write_bytes(damaged)
        assert main(["--out", str(tmp_path / "out"), "--device", "cpu"]) == 1
        assert capsys.readouterr().err.startswith(f"error: {course}/build/gpu.tar.gz")
        assert not (course / "build" / "gpu").exists()


def test_without_a_gpu_it_says_so_and_nonsense_is_refused(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main(["--out", str(tmp_path / "out")]) == 1
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


# On a rented machine.

# What such a machine has; what these need is there, too.
THERE = ("jinja2", "matplotlib", "numpy", "pillow", "pip", "psutil", "setuptools", "torch", "torchvision")
THERE += ("tqdm", "triton")
HIDING = """
import sys
from importlib.machinery import PathFinder

class OnlySome(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else super().find_spec(name, path, target)

sys.meta_path = [OnlySome if finder is PathFinder else finder for finder in sys.meta_path]
"""
OTHERS = (":!course", ":!exercises", ":!solutions")  # in their place is a small course
STEPS = ("smoke", "limits", "branches", "recordings", "ratios", "others", "judge")
SCRIPTS = {
    "course/05_twice.py": CHAPTER,
    "course/01_more.py": CHAPTER.replace("two ways", "more"),
    "solutions/01_twice/01_twice.py": EXERCISES,
}


def hidden(names: tuple[str, ...]) -> set[str]:
    """The modules that are installed here, and not where there are only these distributions."""
    known = with_what_they_need(names) | {"autograder"}
    owned = packages_distributions().items()
    return {module for module, owners in owned if not known & set(map(canonicalize_name, owners))}


@pytest.fixture
def rented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[tuple[str, ...]], None]:
    """Hide from all processes what a machine with these distributions lacks."""

    def hide(names: tuple[str, ...]) -> None:
        (tmp_path / "hiding").mkdir(exist_ok=True)
        code = f"HIDDEN = {sorted(hidden(names))!r}\n{HIDING}"
        (tmp_path / "hiding" / "sitecustomize.py").write_text(code, encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{tmp_path / 'hiding'}")

    return hide


def test_what_notebooks_import_is_there() -> None:
    missing = hidden((*NEEDED, *THERE)) - {"torchao"}  # chapter 21 goes on without it
    assert {"nbgrader", "hypothesis", "dask", "jupyterlab"} <= missing
    for path in [*COURSE, *SOLUTIONS, *(ROOT / "course" / "parts").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not missing & {name.partition(".")[0] for name in names}, f"{path.name}:{node.lineno}"


@pytest.mark.slow  # processes that load torch
def test_nothing_is_imported_that_such_a_machine_lacks(rented) -> None:
    rented((*NEEDED, *THERE))
    done = run(sys.executable, "benchmarks/gpu/smoke.py", "packages", "cpu", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    # A package that was forgotten hinders its step alone, and is told.
    rented(THERE)
    done = run(sys.executable, "benchmarks/gpu/gpu_run.py", "--help", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    done = run(sys.executable, "benchmarks/gpu/smoke.py", "packages", "cpu", cwd=ROOT)
    said = done.stderr.splitlines()[-1]
    assert done.returncode and "No module named 'nbclient'" in said and "No module named 'msgspec'" in said


def archived(archive: Path) -> dict[tuple[str, str], dict]:
    """What an archive holds, by step and item."""
    if not archive.exists():
        return {}
    with tarfile.open(archive) as tar:
        names = [name for name in tar.getnames() if Path(name).stem in STEPS and name.endswith(".json")]
        files = {Path(name).stem: json.load(tar.extractfile(name)) for name in names}
    return {(step, item): found for step, items in files.items() for item, found in items.items()}


def machine_command(tmp_path: Path, number: int, carried: Path | None, enough: Callable) -> tuple[int, Path]:
    """One command on a fresh machine, killed once what it found is ``enough``; gives its code and archive."""
    machine, out = tmp_path / f"machine {number}", tmp_path / f"out {number}"
    copy_files(machine, git(ROOT, "ls-files", "-z", "--", ".", *OTHERS).split("\0")[:-1])
    for name, text in SCRIPTS.items():
        write_whole(machine / name, text)
    out.mkdir()
    if carried:
        (machine / "build").mkdir()
        shutil.copy(carried, machine / "build" / "gpu.tar.gz")
    words = f"--device cpu --only {','.join(STEPS)}"
    own = {"PYTHONPATH": str(tmp_path / "hiding"), "XDG_CACHE_HOME": str(machine / "cache")}
    there = {"cwd": machine, "env": environment(AUTOGRADER_SECONDS="0.1", **own)}
    make = ["make", "gpu", f"OUT={out}", f"PYTHON={sys.executable}", f"ARGS={words}"]
    with subprocess.Popen(make, start_new_session=True, **there) as process:
        end = time.monotonic() + PATIENCE
        while process.poll() is None and not enough(archived(out / "gpu.tar.gz")):
            assert time.monotonic() < end
            time.sleep(0.2)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    back = list(out.iterdir())
    assert len(back) <= 8 and max(path.stat().st_size for path in back) <= 16 << 20
    assert all(re.fullmatch(r"[\w.-]+", path.name, re.ASCII) for path in back)
    return process.returncode, out / "gpu.tar.gz"


@pytest.mark.slow
def test_after_three_commands_everything_is_there_once(tmp_path: Path, rented) -> None:
    rented((*NEEDED, *THERE))
    carried, before, codes = None, {}, []
    for number, last in enumerate(("branches", "ratios", "nothing")):
        enough = lambda found, last=last: any(step == last for step, _ in found)
        code, carried = machine_command(tmp_path, number, carried, enough)
        codes.append(code)
        after = archived(carried)
        assert len(after) > len(before)
        # What an earlier command has handed over is not done again: the times that it took are the same.
        assert [one for one in before if one[0] != "smoke" and after[one] != before[one]] == []
        before = after
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0]
    assert [sum(step == name for step, _ in after) for name in STEPS] == [5, 1, 3, 1, 1, 1, 40]
    assert {item for step, item in after if step == "branches"} == set(SCRIPTS)
    assert not [found for (step, _), found in after.items() if step != "smoke" and found["errors"]]
    with tarfile.open(carried) as tar:
        (record,) = (name for name in tar.getnames() if re.search("/timings/.*json$", name))
        content = json.load(tar.extractfile(record))
    assert sorted(content["timings"]) == ["more", "two ways"]
