"""The judge for code that nobody trusts; a stranger's script where only the core is installed; the guide."""

import os
import re
import shlex
import sys
import venv
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from programs import not_waiting_for, run
from repository import PROJECT, ROOT, with_what_they_need

from autograder.gpu import device_judge
from autograder.judge import Verdict, judge
from autograder.sandbox import Sandbox, shared_sandbox

pytestmark = [pytest.mark.slow, pytest.mark.attack]

GIVEN = """
import torch
def inputs(generator, device): return torch.rand(500, 300, generator=generator).to(device)
def unseeded(generator): return torch.rand(3)
def fixed(generator): return torch.ones(3)
def sums(rows): return torch.stack([row.sum() for row in rows])
def fails(rows): raise KeyError("no")
"""
RIGHT = "def sums(rows): return rows.sum(1)"


@pytest.fixture(scope="module", autouse=True)
def locks(tmp_path_factory: pytest.TempPathFactory):
    """Nobody waits for races of other tests."""
    with not_waiting_for(tmp_path_factory.mktemp("locks")):
        yield


def judged(folder: Path, text: str | bytes, name="new.py", given="sums", inputs="inputs", **more) -> Verdict:
    """The verdict on an answer with this text, in a file of this name."""
    (folder / "old.py").write_text(GIVEN)
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    old, more = f"{folder}/old.py", {"at_least": 2, "seconds": 60} | more
    return judge(f"{folder}/{name}:sums", f"{old}:{given}", f"{old}:{inputs}", **more)


def test_no_answer_runs_on_a_gpu_without_walls(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.measuring.clocks.present", lambda: ["cpu", "cuda"])
    monkeypatch.setattr(device_judge, "isolation", lambda device: [])
    verdict = judged(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')\n{RIGHT}", device="cuda")
    assert "no walls" in verdict.why and not (tmp_path / "ran").exists()


CASES = yaml.safe_load((ROOT / "tests/adversaries/for_strangers.yaml").read_text(encoding="utf-8"))
FAST = {name: case for name, case in CASES.items() if case["word"] == "faster"}
BAD = {name: case for name, case in CASES.items() if name not in FAST}


def judged_case(folder: Path, case: dict) -> tuple[Verdict, bytes, str]:
    """The verdict on an answer of the catalogue; its file's content and name."""
    name = os.fsdecode(case.get("file", "new.py").encode("latin-1"))
    text = (case["code"] + case.get("then", "") * 900_000).encode(case.get("encoding", "utf-8"))
    return judged(folder, text, name), text, name


@pytest.mark.parametrize("case", FAST.values(), ids=FAST)
def test_a_fast_answer(case, tmp_path):
    verdict, text, name = judged_case(tmp_path, case)
    assert verdict.fast_enough and verdict.word == "faster" and not verdict.why
    assert verdict.interval[0] <= verdict.ratio <= verdict.interval[1] and verdict.error == 1e-3
    assert len(verdict.logs) >= 3 and verdict.given_seconds > verdict.answer_seconds > 0
    assert {path.name for path in tmp_path.iterdir()} == {"old.py", name}
    assert (tmp_path / name).read_bytes() == text
    assert re.fullmatch(r"faster: \S+× as fast as old.py:sums \(.*\n.* \(cpu time\)", str(verdict))


def test_a_slow_answer(tmp_path):
    verdict = judged(tmp_path, GIVEN)
    assert (verdict.word, verdict.fast_enough) == ("slower", False) and 0.5 < verdict.ratio < 2


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_a_bad_answer(case, tmp_path):
    verdict, *_ = judged_case(tmp_path, case)
    assert verdict.word == case["word"] and case["why"] in verdict.why and verdict.ratio is None
    assert "\n" not in str(verdict)


def test_no_module_beside_an_answer_stands_for_one_of_pythons(tmp_path):
    for name in ("argparse", "msgspec", "opt_einsum"):  # torch asks for the last one, and does without
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    for name in ("old", "new"):
        (tmp_path / f"{name}.py").write_text(GIVEN)
    race = ("-m", "autograder", "race", "new.py", "old.py", "--at-least", "2", "--function", "nothing")
    done = run(sys.executable, *race, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert "defines no function 'nothing'" in done.stderr and not (tmp_path / "ran").exists()


def test_an_answer_that_never_ends(tmp_path):
    verdict = judged(tmp_path, "while True: pass", seconds=3)
    assert (verdict.word, verdict.why) == ("not run", "new.py:sums did not end within 3 s.")


def test_a_bad_given_version_or_bad_inputs(tmp_path):
    for given, inputs, why in [
        ("sums", "unseeded", "inputs gives other values for an equal generator"),
        ("sums", "fixed", "inputs gives the same values each time"),
        ("fails", "inputs", "the given version raised KeyError: 'no'"),
        ("sums", "nothing", "old.py defines no function 'nothing'."),
    ]:
        verdict = judged(tmp_path, RIGHT, given=given, inputs=inputs)
        assert verdict.word == "not run" and why in verdict.why


def test_an_undecided_race_is_run_a_second_time(tmp_path, monkeypatch):
    loud = lambda self, *_: setattr(self, "_noisy", "It is loud.")
    monkeypatch.setattr(Sandbox, "_check_until_quiet", loud)
    monkeypatch.setattr(shared_sandbox(False), "_noisy", "It was loud.")
    doing: list[str] = []
    verdict = judged(tmp_path, RIGHT, tell=doing.append)
    assert (verdict.word, verdict.why, doing.count("racing")) == ("undecided", "It is loud.", 2)


def test_a_race_on_a_device_says_where_there_is_none(tmp_path):
    import torch

    if not torch.cuda.is_available():
        assert judged(tmp_path, RIGHT, device="cuda").why == "there is no cuda device here."


# Strangers.

SCRIPT = """
import sys
sys.exec_prefix = {real!r}  # the sandbox sees where the links of this environment lead
import torch
from autograder.judge import judge
def old(rows): return torch.stack([row.sum() for row in rows])
def new(rows): return rows.sum(1)
def inputs(generator): return torch.rand(500, 300, generator=generator)
if __name__ == "__main__":
    print(judge(new, old, inputs, at_least=2))
"""


def core_only(folder: Path) -> Path:
    """A Python in whose environment there is nothing but what pyproject.toml's core needs."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in with_what_they_need(PROJECT["dependencies"]):
        with suppress(metadata.PackageNotFoundError):
            found = metadata.distribution(name)
            for top in {file.parts[0] for file in found.files or ()} - {".."}:
                with suppress(FileExistsError):
                    (packages / top).symlink_to(found.locate_file(top))
    return folder / "bin" / "python"


def test_a_strangers_script_needs_the_core_only(tmp_path):
    stranger = core_only(tmp_path / "venv")
    (tmp_path / "script.py").write_text(SCRIPT.format(real=sys.prefix))
    there = {**os.environ, "PYTHONPATH": str(ROOT)}
    for package in ("torch", "matplotlib", "nbgrader", "torchvision", "tqdm"):
        done = run(stranger, "-c", f"import {package}", env=there)
        assert (done.returncode == 0) == (package == "torch"), package
    done = run(stranger, "script.py", cwd=tmp_path, env=there)
    assert done.stdout.startswith("faster: "), done.stdout + done.stderr


def test_the_guide_does_what_it_says(tmp_path):
    """Each command is run on the files that it shows; figures vary."""
    page = (ROOT / "docs" / "judge.md").read_text(encoding="utf-8")
    files = re.findall(r"(?ms)^`([\w.]+)`[^\n]*:\n\n```python\n(.*?)^```", page)
    commands, (example,) = (re.findall(rf"(?ms)^```{kind}\n(.*?)^```", page) for kind in ("sh", "text"))
    assert len(files) == page.count("```python") and len(commands) == 3
    for name, text in files:
        (tmp_path / name).write_text(text, encoding="utf-8")
    bin_folder = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    plug_in = "-p autograder.judge.pytest_plugin"
    there = {**os.environ, "PATH": bin_folder, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": plug_in}
    said = []
    for line in commands:
        done = run(*shlex.split(line), cwd=tmp_path, env=there)
        assert done.returncode == 0, done.stdout + done.stderr
        said.append(done.stdout)
    figures = re.compile(r"[\d.,]+(?=×)|[\d.]+ [mµn]?s\b")
    assert figures.sub("#", said[0]) == figures.sub("#", example)
    assert said[1].startswith("faster ") and " 1 passed" in said[2]
