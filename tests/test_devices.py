"""Devices that are not here: small memories, limits of another day, queued commands, a GPU's record."""

import ast
import json
import os
import shutil
import sys
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from pretend_cuda import pretended_gpu
from programs import printed
from report import ROOM
from repository import COURSE, ROOT, SOLUTIONS, built
from test_bench import KERNELS
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map_only

import autograder
from autograder import costs, race
from autograder.authoring.builder import code_cells
from autograder.authoring.colab import is_colab_cell
from autograder.measuring import clocks, limits, store
from autograder.measuring.costs import Costs
from autograder.measuring.duel import Ratio, fresh_inputs
from autograder.measuring.units import times
from autograder.show import table_markdown
from autograder.teaching import recordings, remember, scoreboard
from autograder.teaching.claims import CLAIMS
from autograder.teaching.evidence import Advice, Evidence, holds, judge
from autograder.teaching.scripts import comparisons


def test_an_answer_is_beyond_a_limit_only_where_that_is_measured_anew(monkeypatch, tmp_path) -> None:
    """What was kept may be of a day on battery."""
    at = lambda speed: {"bytes_per_second": [[n, speed] for n in limits.SIZES], "flops_per_second": speed}
    slow, fast = at(1.0), at(1e15)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(limits, "rates", cache(lambda *_: slow))
    monkeypatch.setattr(limits, "measure_rates", lambda *_: fast)
    inputs = lambda generator, device: torch.rand(300, generator=generator)
    given = lambda x: torch.stack([one * 2 for one in x])
    monkeypatch.setattr("autograder.judging.race.check_here", lambda: None)  # the machine may be busy
    outcome = race(lambda x: x * 2, against=given, on=inputs, at_least={"cpu": 2}, points=3, bytes=2400)
    assert outcome.points == 3 and store.read(limits.kept_as("cpu", 1)) == fast


needs_fake_gpu = pytest.mark.skipif(torch.version.cuda is None, reason="this torch knows no CUDA device")


@needs_fake_gpu
def test_limits_are_measured_on_a_gpu_with_two_gigabytes(monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda *_: (1_500 << 20, 2 << 30))
    monkeypatch.setattr(limits, "best_seconds", lambda function, device, calls: function() is None or 1e-3)
    with FakeTensorMode():
        assert costs(limits.measure_rates, "cuda").peak_bytes < 1_000 << 20


@needs_fake_gpu
def test_a_kernel_that_is_timed_takes_longer_than_what_is_around_it(monkeypatch) -> None:
    """Twice what the L2 cache of an H100 holds takes 30 µs; a launch and a switch of cuDNN's take less."""
    monkeypatch.syspath_prepend(ROOT / "course")
    from parts.inputs import normal

    for chapter, title in zip(("05_cudnn", "05_cudnn", "19_first_kernel"), KERNELS, strict=True):
        tree = ast.parse((ROOT / "course" / f"{chapter}.py").read_text(encoding="utf-8"))
        makers = [node for node in tree.body if ast.unparse(node).partition("(")[2].startswith("generator,")]
        exec(ast.unparse(ast.Module(makers, [])), names := {"torch": torch, "normal": normal})
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args)
        call = next(node for node in calls if ast.unparse(node.args[0]) == repr(title))
        given = next(word.value for word in call.keywords if word.arg == "inputs")
        with FakeTensorMode():
            made = tree_leaves(eval(ast.unparse(given), names)(torch.Generator(), "cuda"))
        assert sum(tensor.nbytes for tensor in made) > 2 * 50e6


def test_commands_are_sent_before_the_work_begins(monkeypatch) -> None:
    """Windows queues them; without that, a side without work for the GPU takes no time at all."""
    done = Mock(elapsed_time=lambda end: 1.0)
    with pretended_gpu():
        monkeypatch.setattr("torch.cuda.Event", lambda **_: done)
        clocks.run_block(done.work, (), 1, "cuda")
    assert [call[0] for call in done.mock_calls][-4:] == ["record", "query", "work", "record"]


def test_a_profile_without_a_kernel_is_idle_and_each_gpu_has_a_cache_of_its_own(monkeypatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "course")
    from parts.overhead import busy

    assert busy([]) == 0
    caches = {0: torch.ones(1), 1: torch.ones(1)}
    monkeypatch.setattr(clocks, "_l2_scratch", caches)
    monkeypatch.setattr("torch.cuda.current_device", lambda: 1)
    clocks.flush_cache("cuda:0")
    assert (caches[0], caches[1]) == (0, 1)


@pytest.mark.parametrize("ratios", [[3.0], [0.3], [3.0, 0.3], [0.3, 3.0], [0.3, 1.0, 3.0]], ids=str)
def test_whatever_gpus_give_the_score_page_is_built(ratios: list[float], tmp_path) -> None:
    """Their ratios may contradict every condition."""
    shutil.copytree(recordings.TIMINGS, tmp_path / "timings")
    others = cycle(ratios)
    timings = {
        cell.title.replace("…", "7"): {"clock": "cuda", "seconds": {"a": [next(others)] * 9, "b": [1.0] * 9}}
        for cell in comparisons(ROOT / "course")
        if cell.claim and cell.only != "cpu"
    }
    for name in ("NVIDIA H100", "Tesla T4"):
        device = {"kind": "cuda", "name": name, "torch": "2.15.0", "date": "2026-11-01"}
        content = json.dumps({"device": device, "timings": timings})
        (tmp_path / "timings" / f"{name}.json").write_text(content)
    found = scoreboard.findings(timings=tmp_path / "timings")
    said = "\n".join([scoreboard.summary(found), *(judge(claim, found).rule for claim in CLAIMS)])
    assert " CPUs, " in said and "On 2 GPUs, " in said and "No GPU was measured yet" not in said
    assert all(scoreboard.section(found, word) for word in (Advice.HOLDS, Advice.HOLDS_WHEN))
    remember.with_three(f"{remember.BEGIN}\n{remember.END}", found)


def test_verdicts_say_for_which_kind_of_device_they_are() -> None:
    def measured(ratio: float, on: str, processes: int = 1) -> Evidence:
        figure, where = Ratio(ratio, 0.9 * ratio, 2 * ratio), {"device": on, "on": on, "processes": processes}
        return Evidence("F6", "add", "timing", holds("F6", figure), ratio=figure, **where)

    here, use = measured(2, "cpu", 5), CLAIMS["F6"].use
    same, other = (judge("F6", [here, measured(ratio, "cuda")]) for ratio in (4, 0.5))
    assert (same.word, other.word) == ("holds", "holds when …")
    ours, theirs = f"On one CPU, when {use}: 1.8× to 4× faster.", f"On one GPU, in one process, when {use}"
    assert same.rule == f"{ours} {theirs}: 4× faster."
    apart = judge("F6", [here, measured(0.5, "cuda"), measured(2, "cuda")])
    assert apart.rule.endswith("2× slower to 2× faster; what it depends on is not known.")


# What every race asks for on a GPU can be reached there, as far as counting tells without one.

# Seconds that the host takes for an operation, a view and a wait, where GPUs stand. Nearly all races are too
# small to keep a GPU busy for longer. Estimates of somebody who reads profiles: what `make gpu` measures in
# its step *ratios* replaces them.
OPERATION, VIEW, WAIT = 6e-6, 1.5e-6, 12e-6
# New memory is written by so many bytes a second: the data sheets of a T4, which is slow, and an H100.
BANDWIDTHS = (0.3e12, 3e12)
# Their given versions work in Python, which is not counted: for longer than their answers' launches take.
IN_PYTHON = {"group_sums", "add_exactly", "masks", "snapshot"}


def seconds(cost: Costs, bandwidth: float) -> float:
    launched = OPERATION * cost.figure("operations") + VIEW * cost.figure("views") + WAIT * cost.syncs
    return launched + cost.bytes / bandwidth


def run(source: Path, monkeypatch: pytest.MonkeyPatch, check: Any, race: Any) -> None:
    """Run a solution's cells with these in the place of ``check`` and ``race``."""
    monkeypatch.chdir(source.parent)
    monkeypatch.setattr(autograder, "check", check)
    monkeypatch.setattr(autograder, "race", race)
    names: dict[str, Any] = {}
    for cell in code_cells(built(source)):
        if not is_colab_cell(cell) and not cell.id.startswith("recordings"):
            exec(compile(cell.source, f"cell {cell.id}", "exec"), names)


@pytest.mark.slow
def test_ratios_asked_for_on_a_gpu_can_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[str, str, float, float]] = []

    def race(function: Any, *, against: Any, on: Any, at_least: dict[str, float], **rest: object) -> None:
        if "cuda" in at_least and function.__name__ not in IN_PYTHON:
            for _ in range(2):  # the first call may do what the next ones find done
                given, answer = (costs(side, *fresh_inputs(on, 1, "cpu")) for side in (against, function))
            ratio = min(seconds(given, bytes) / seconds(answer, bytes) for bytes in BANDWIDTHS)
            found.append((source.stem[:2], function.__name__, at_least["cuda"], ratio))

    for source in SOLUTIONS:
        run(source, monkeypatch, Mock(), race)
    narrow = [
        f"{chapter} {name}: {times(asked)} asked for, {times(predicted)} predicted"
        for chapter, name, asked, predicted in found
        if predicted < ROOM * asked
    ]
    assert narrow == []
    rows = [(chapter, f"`{name}`", times(asked), times(ratio)) for chapter, name, asked, ratio in found]
    table = table_markdown(("chapter", "race", "asked for", "predicted"), rows)
    assert table in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), f"It should hold:\n\n{table}"


@pytest.mark.slow
@needs_fake_gpu
def test_answers_that_may_not_wait_need_no_number_from_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake tensors have no numbers: whatever asks for one raises, in whichever operation."""
    waits, tried = [], 0

    def check(function: Any, *, on: Any, raises: Any = None, at_most: Any = None, **rest: object) -> None:
        nonlocal tried
        if raises or (at_most or {}).get("syncs") != 0:
            return
        for case in [on] if callable(on) else on:
            given = fresh_inputs(case, 1, "cpu")
            with FakeTensorMode() as fake:
                given = tree_map_only(torch.Tensor, lambda one: fake.from_tensor(one).to("cuda"), given)
                try:
                    function(*given)
                    tried += 1
                except (
                    fake_tensor.DataDependentOutputException,
                    fake_tensor.DynamicOutputShapeException,
                ) as error:
                    waits.append(f"{source.stem}, {function.__name__} of {case.__name__}: {error}")
                except RuntimeError as error:
                    if "PrimaryContext" not in str(error):  # a backward pass asks the driver
                        raise

    for source in SOLUTIONS:
        run(source, monkeypatch, check, Mock())
    assert waits == [] and tried > 20


# The Triton kernels of chapter 19 and its exercises compile for GPUs, old and new, without one.

COMPILE = """
import kernels
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

for name, (signature, constants) in kernels.LAUNCHED.items():
    kernel = getattr(kernels, name)
    places = {(kernel.arg_names.index(key),): value for key, value in constants.items()}
    for capability in (75, 90):
        triton.compile(ASTSource(kernel, signature, places), target=GPUTarget("cuda", capability, 32))
        print(name, capability)
"""


@pytest.mark.slow
@pytest.mark.parametrize("source", [path for path in COURSE + SOLUTIONS if path.stem[:2] == "19"], ids=str)
def test_kernels_compile_for_a_t4_and_an_h100(source, tmp_path) -> None:
    pytest.importorskip("triton", reason="it comes for Linux")
    places = {
        "PYTHONPATH": str(tmp_path),
        "TRITON_INTERPRET": "0",
        "TRITON_CACHE_DIR": str(tmp_path / "cache"),
    }
    there = {**os.environ, **places, "AUTOGRADER_SECONDS": "0", "MPLBACKEND": "agg"}
    collect = [sys.executable, "tests/triton_kernels.py", source, tmp_path / "kernels.py"]
    printed(*collect, cwd=ROOT, env={**there, "TRITON_INTERPRET": "1"})
    said = printed(sys.executable, "-c", COMPILE, cwd=tmp_path, env=there)
    assert len(said.splitlines()) >= 6
