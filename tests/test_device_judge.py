"""The judge for a GPU, with the CPU in its place where there is none."""

import sys

import pytest
import torch
import yaml
from programs import printed
from repository import ROOT

from autograder.gpu import device_judge
from autograder.gpu.device_judge import Work, judge_on_device
from autograder.judging.calls import AnswerError
from autograder.measuring.duel import DuelError

pytestmark = [pytest.mark.slow, pytest.mark.attack]

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
DEVICES = ["cpu", pytest.param("cuda", marks=NO_GPU)]
GIVEN = """
import torch

def slow(x):
    for _ in range(1500):
        x = x.mul(1.0)
    return x + 1
"""
QUICK = f"""{GIVEN}
def quick(x):
    for _ in range(500):
        x = x.mul(1.0)
    return x + 1
"""
# The process that runs this is the module below.
IN_ITS_PROCESS = f"""{QUICK}
import sys, threading
here = sys.modules["__main__"]
"""


@pytest.fixture(autouse=True, scope="module")
def walls() -> None:
    """Its processes have walls of their own, which can fail where the sandbox's hold."""
    if not device_judge.isolation("cpu"):
        pytest.skip("needs bubblewrap: the processes of the judge for a GPU have no walls here")


@pytest.fixture(autouse=True)
def impatient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy CPU a call that does nothing may take as long as one that works."""
    if "short" not in request.node.name:
        monkeypatch.setattr(device_judge, "FEWEST_TIMES", 0)


def numbers(generator: torch.Generator, device: str) -> torch.Tensor:
    return torch.rand(1 << (20 if device == "cuda" else 16), generator=generator).to(device)


def race(cell: str, device: str, name: str = "work"):
    return judge_on_device(Work([GIVEN], "slow"), Work([cell], name), numbers, threshold=1.5, device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_a_fast_answer_is_faster_and_the_given_version_itself_is_not(device: str) -> None:
    verdict = race(QUICK, device, "quick")
    assert verdict.word == "faster" and verdict.clock == "wall" and verdict.ratio.median > 1.5
    assert len(verdict.logs) >= 11 and all(len(taken) >= 22 for taken in verdict.seconds.values())
    verdict = race(GIVEN, device, "slow")
    assert verdict.word == "slower" and 0.6 < verdict.ratio.median < 1.5


CHEATS = yaml.safe_load((ROOT / "tests/adversaries/on_a_device.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("cheat", CHEATS)
def test_no_cheat_is_faster(cheat: str, device: str) -> None:
    try:
        said = race(f"{IN_ITS_PROCESS}\n{CHEATS[cheat]['code']}", device).word
    except (AnswerError, DuelError) as error:
        said = str(error)
    assert any(words in said for words in CHEATS[cheat]["ends"].split("|")), said


@pytest.mark.parametrize("device", DEVICES)
def test_results_may_be_of_many_kinds(device: str) -> None:
    many = """
def {name}(x):
    result = {of}(x)
    return {{"views": (x[::2], x.expand(2, -1)), "numbers": [result.sum(), 3, 0.5, None, "text"],
            "empty": result[:0], "strided": result.view(2, -1).T, "bits": result > 1.5, "half": result.half(),
            "repeated": result[:1].expand(9), "complex": torch.complex(result, -result).conj()}}
"""
    given, answer = (many.format(name=f"{of}_many", of=of) for of in ("slow", "quick"))
    sides = Work([GIVEN, given], "slow_many"), Work([QUICK, answer], "quick_many")
    verdict = judge_on_device(*sides, numbers, threshold=1.2, device=device)
    assert verdict.word == "faster"


@pytest.mark.parametrize("device", DEVICES)
def test_short_calls_are_not_judged(device: str) -> None:
    cell = "def work(x):\n    return x + 1"
    with pytest.raises(DuelError, match=r"too little to be judged here: .* Take larger inputs"):
        judge_on_device(Work([cell], "work"), Work([cell], "work"), numbers, threshold=1.5, device=device)


def test_nonsense_is_refused() -> None:
    sides = Work([GIVEN], "slow"), Work([QUICK], "quick")
    for on, error, said in [
        (lambda generator, device: torch.ones(9), ValueError, "the same inputs each time"),
        (lambda generator, device: torch.rand(9, generator=generator).numpy(), TypeError, "plain values"),
    ]:
        with pytest.raises(error, match=said):
            judge_on_device(*sides, on, threshold=2, device="cpu")


def test_its_walls_let_python_in_through_a_link(tmp_path) -> None:
    """As where a .venv in the folder for temporary files is a link to another."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    look = "from autograder.gpu.device_judge import isolation; print(*isolation('cpu'))"
    assert "--unshare-net" in printed(tmp_path / ".venv" / "bin" / "python", "-c", look, cwd=ROOT)
