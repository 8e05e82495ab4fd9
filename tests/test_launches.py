"""What every race asks for on a GPU can be reached there, as far as counting tells without one."""

from pathlib import Path
from typing import Any

import pytest
import torch
from repository import ROOT, SOLUTIONS, built
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.utils._pytree import tree_map_only

import autograder
from autograder.authoring.builder import code_cells
from autograder.authoring.colab import is_colab_cell
from autograder.gpu.report import ROOM
from autograder.measuring.costs import Costs, costs
from autograder.measuring.duel import fresh_inputs
from autograder.measuring.units import times
from autograder.show import table_markdown

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


def run(source: Path, check: Any, race: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a solution's cells with these in the place of ``check`` and ``race``."""
    monkeypatch.chdir(source.parent)
    monkeypatch.setattr(autograder, "check", check)
    monkeypatch.setattr(autograder, "race", race)
    names: dict[str, Any] = {}
    for cell in code_cells(built(source)):
        if not is_colab_cell(cell) and not cell.id.startswith("recordings"):
            exec(compile(cell.source, f"cell {cell.id}", "exec"), names)


def nothing(*args: object, **rest: object) -> None:
    pass


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
        run(source, nothing, race, monkeypatch)
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
@pytest.mark.skipif(torch.version.cuda is None, reason="this torch knows no CUDA device at all")
def test_answers_that_may_not_wait_need_no_number_from_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake tensors have no numbers: whatever asks for one raises, in whichever operation."""
    waits, tried = [], 0

    def check(
        function: Any, *, like: Any, on: Any, raises: Any = None, at_most: Any = None, **_: Any
    ) -> None:
        nonlocal tried
        if raises or (at_most or {}).get("syncs") != 0 or function.__name__ == "step_or_shapes":
            return  # the last one is a given version that waits
        for case in [on] if callable(on) else on:
            given = fresh_inputs(case, 1, "cpu")
            with FakeTensorMode() as fake:
                given = tree_map_only(torch.Tensor, lambda one: fake.from_tensor(one).to("cuda"), given)
                try:
                    function(*given)
                    tried += 1
                except (DataDependentOutputException, DynamicOutputShapeException) as error:
                    waits.append(f"{source.stem}, {function.__name__} of {case.__name__}: {error}")
                except RuntimeError as error:
                    if "PrimaryContext" not in str(error):  # a backward pass asks the driver
                        raise

    for source in SOLUTIONS:
        run(source, check, nothing, monkeypatch)
    assert waits == []
    assert tried > 20
