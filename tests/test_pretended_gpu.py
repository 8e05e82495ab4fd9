"""Exercises and chapters on a GPU that is pretended: what lies on two devices, and where the host waits."""

import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import pretend_cuda
import pytest
import torch
from pretend_cuda import CudaTypes, Pretended, pretended_gpu
from repository import COURSE, SOLUTIONS, built
from torch.utils._pytree import tree_leaves

import autograder
from autograder.authoring.builder import code_cells
from autograder.authoring.colab import is_colab_cell
from autograder.judging.check import check
from autograder.judging.outcome import Outcome
from autograder.judging.race import race
from autograder.measuring import gpus
from autograder.measuring.duel import fresh_inputs, interleave

COMPILES = ("recordings",)  # torch's compiler asks the driver
LONGEST_CELL = 120  # seconds, so that one that hangs is named


class Trial:
    """``check`` as it is, on the pretended GPU alone, for ``race`` too; what it finds wrong is kept."""

    def __init__(self, gpu: Pretended) -> None:
        self.gpu, self.wrong, self.cell, self.tried = gpu, list[str](), "", 0

    def check(self, function: Callable[..., Any], *, on: Any, **rest: Any) -> Outcome:
        cases = [on] if callable(on) else on
        if "IndexError" in str(rest.get("raises")):
            made = tree_leaves([fresh_inputs(case, 1, pretend_cuda.KIND) for case in cases])
            if any(tensor.device.type != "cpu" for tensor in made if isinstance(tensor, torch.Tensor)):
                self.wrong.append(f"{self.cell}: an answer that forgets the range stops the GPU")
        found = check(function, on=on, **rest)
        self.tell(found, found.word in ("passed", "not available"))
        most = (rest.get("at_most") or {}).get("syncs")
        if most is not None and rest.get("raises") is None:
            self.count(function, cases, most)
        return found

    def race(self, function: Callable[..., Any], *, against: Callable[..., Any], **rest: Any) -> Outcome:
        asked = {key: rest[key] for key in ("on", "points", "tolerance") if key in rest}
        found = check(function, like=against, **asked)
        self.tell(found, found.word == "passed")
        return found

    def tell(self, found: Outcome, fine: bool) -> None:
        self.tried += 1
        if not fine:
            self.wrong.append(f"{self.cell}: {found.text()}")

    def count(self, function: Callable[..., Any], cases: Sequence[Callable[..., Any]], most: int) -> None:
        for case in cases:
            before = len(self.gpu.waits)
            try:
                function(*fresh_inputs(case, 1, pretend_cuda.KIND))
            except TypeError as error:
                if not gpus.refused(pretend_cuda.KIND, error):
                    raise
            if len(waits := self.gpu.waits[before:]) > most:
                self.wrong.append(f"{self.cell}, {case.__name__}: the host waits: {waits}")


def run(notebook: str, cell: Any, names: dict[str, Any]) -> None:
    """Run a cell; one that takes too long is named and ended by a TimeoutError."""

    def too_long(*_: object) -> None:
        raise TimeoutError(f"{notebook}, {cell.id}: more than {LONGEST_CELL} s")

    signal.signal(signal.SIGUSR1, too_long)  # the alarm is the checks' own
    end = threading.Timer(LONGEST_CELL, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1))
    end.start()
    try:
        exec(compile(cell.source, f"cell {cell.id}", "exec"), names)
    finally:
        end.cancel()


@pytest.mark.pretended
@pytest.mark.parametrize("kind", gpus.KINDS)
@pytest.mark.parametrize("source", SOLUTIONS, ids=lambda path: path.stem)
def test_solutions_run_on_a_gpu(source, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(source.parent)
    monkeypatch.setenv("AUTOGRADER_DEVICES", kind)
    with pretended_gpu(kind) as gpu, CudaTypes() if kind == "cuda" else nullcontext():
        trial = Trial(gpu)
        monkeypatch.setattr(autograder, "check", trial.check)
        monkeypatch.setattr(autograder, "race", trial.race)
        names: dict[str, Any] = {}
        for cell in code_cells(built(source)):
            if not is_colab_cell(cell) and not cell.id.startswith(COMPILES):
                trial.cell = cell.id
                run(source.stem, cell, names)
    assert trial.wrong == [] and trial.tried > 3


@pytest.mark.pretended
def test_whole_numbers_have_no_product_of_matrices_on_a_gpu() -> None:
    with CudaTypes(), pytest.raises(NotImplementedError, match=r"not implemented for torch\.int64"):
        torch.ones(2, 2, dtype=torch.int64) @ torch.ones(2, 2, dtype=torch.int64)


def one_too_large(generator: torch.Generator, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(3, device=device), torch.tensor([0, 3], device=device)


def test_a_gpu_that_stopped_is_told_in_a_sentence(monkeypatch) -> None:
    monkeypatch.setenv("AUTOGRADER_DEVICES", "cuda")
    for test in (
        lambda answer, given: check(answer, like=given, on=one_too_large, points=1),
        lambda answer, given: check(answer, like=given, on=one_too_large, raises=RuntimeError, points=1),
        lambda answer, given: race(answer, against=given, on=one_too_large, at_least={"cuda": 2}, points=1),
    ):
        with pretended_gpu():
            for _ in range(2):  # the next cell finds it stopped
                found = test(lambda x, places: x[places], lambda x, places: x[places.clamp(max=2)])
                assert found.word == "error" and found.points == 0
                assert "Restart the kernel" in found.summary


# Cells that cannot run on a GPU that is not there, by a piece of their code, and why.
NOT_PRETENDED = {
    "Adam's average": "a module changes device and type at once, and its gradients with it",
    "Convolving(": "it starts processes, in which nothing is pretended",
    "ProfilerActivity.CUDA": "a profile has no kernels",
    "_record_memory_history": "the driver's own account of its memory",
    "batch.is_pinned() == gpu": "the loader pins in a thread, and asks the driver there",
    "benchmark.Timer": "torch's timer synchronises by itself",
    "blocked_autorange": "torch's timer synchronises by itself",
    "busy @ busy": "a GPU's work of milliseconds takes a CPU minutes",
    "by_rule_and_by_search": "it starts processes, in which nothing is pretended",
    "reserved_after(": "it starts processes, in which nothing is pretended",
    "del extractor": "torch.fx did not make it",
    "extractor = create": "torch.fx traces the network, and finds the pretence",
    "has_torchao": "torchao's tensors take operations their own way",
    "one replay": "a graph that replays nothing",
    "save_on_cpu(": "pinned memory is the driver's",
    "source.exp()": "its source was made in a cell about pinned memory",
}
LEFT_OUT = {
    "15_compiler": "torch's compiler asks the driver for the device",
    "19_first_kernel": "torch's compiler, and Triton's, asks the driver for the device",
    "20_serving": "torch's compiler asks the driver for the device",
    "22_sharding": "its ranks are processes, in which nothing is pretended",
}
CHAPTERS = [path for path in COURSE if path.stem not in ("claims", "index")]


@pytest.mark.pretended
@pytest.mark.parametrize("kind", gpus.KINDS)
@pytest.mark.parametrize("source", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_run_on_a_gpu(source, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if source.stem in LEFT_OUT:
        pytest.skip(LEFT_OUT[source.stem])
    monkeypatch.chdir(source.parent)
    monkeypatch.syspath_prepend(source.parent)
    monkeypatch.setenv("AUTOGRADER_SECONDS", "0")
    monkeypatch.setenv("MPLBACKEND", "agg")
    # The GPU's times mean nothing.
    rounds = lambda *given, **how: interleave(*given, **how, fewest=1 if how["device"] == kind else 7)
    monkeypatch.setattr("autograder.teaching.compare.interleave", rounds)
    wrong = []
    with pretended_gpu(kind):
        names: dict[str, Any] = {"__name__": "__main__"}
        for cell in code_cells(built(source)):
            if is_colab_cell(cell) or any(piece in cell.source for piece in NOT_PRETENDED):
                continue
            try:
                run(source.stem, cell, names)
            except Exception:
                wrong.append(traceback.format_exc(limit=2))
    assert wrong == []
