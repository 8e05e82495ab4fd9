"""What every race asks for on a GPU can be reached there, as far as counting tells without one."""

from typing import Any

import pytest
from report import ROOM
from repository import ROOT, SOLUTIONS, built

import autograder
from autograder.authoring.builder import code_cells
from autograder.authoring.colab import is_colab_cell
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


@pytest.mark.slow
def test_ratios_asked_for_on_a_gpu_can_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[str, str, float, float]] = []

    def race(function: Any, *, against: Any, on: Any, at_least: dict[str, float], **rest: object) -> None:
        if "cuda" in at_least and function.__name__ not in IN_PYTHON:
            for _ in range(2):  # the first call may do what the next ones find done
                given, answer = (costs(side, *fresh_inputs(on, 1, "cpu")) for side in (against, function))
            ratio = min(seconds(given, bytes) / seconds(answer, bytes) for bytes in BANDWIDTHS)
            found.append((source.stem[:2], function.__name__, at_least["cuda"], ratio))

    monkeypatch.setattr(autograder, "check", lambda *_, **__: None)
    monkeypatch.setattr(autograder, "race", race)
    for source in SOLUTIONS:
        monkeypatch.chdir(source.parent)
        names: dict[str, Any] = {}
        for cell in code_cells(built(source)):
            if not is_colab_cell(cell) and not cell.id.startswith("recordings"):
                exec(compile(cell.source, f"cell {cell.id}", "exec"), names)
    narrow = [
        f"{chapter} {name}: {times(asked)} asked for, {times(predicted)} predicted"
        for chapter, name, asked, predicted in found
        if predicted < ROOM * asked
    ]
    assert narrow == []
    rows = [(chapter, f"`{name}`", times(asked), times(ratio)) for chapter, name, asked, ratio in found]
    table = table_markdown(("chapter", "race", "asked for", "predicted"), rows)
    assert table in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), f"It should hold:\n\n{table}"
