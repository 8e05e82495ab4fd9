"""The limits on one notebook as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from autograder.grading.execute import RunEveryCell

pytestmark = pytest.mark.slow


def run(folder: Path, *sources: str, **limits: int) -> list[NotebookNode]:
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    resources = {"metadata": {"path": str(folder)}}
    RunEveryCell(shutdown_kernel="immediate", **limits).preprocess(notebook, resources)
    return notebook.cells


def test_fresh_kernels_are_limited(tmp_path: Path) -> None:
    cells = run(tmp_path, "import os", "os._exit(1)", "os.getpid()", "os._exit(1)", "1", max_restarts=1)
    assert cells[2].outputs[0].output_type == "execute_result"  # the import ran again
    assert cells[4].outputs[0].ename == "NotRun"
    assert "started again 1 times" in cells[4].outputs[0].evalue


def test_the_time_for_a_notebook_is_limited(tmp_path: Path) -> None:
    cells = run(tmp_path, "1", "while True: pass", "2", timeout=60, notebook_timeout=2)
    assert [output.output_type for output in cells[0].outputs] == ["execute_result"]
    assert cells[1].outputs[-1].ename == "TimeLimit"
    assert cells[2].outputs[0].evalue == "Not run: the notebook had used up its 2 seconds."


def test_a_cell_that_only_dies_when_run_again_is_left_out(tmp_path: Path) -> None:
    deadly = "import os; os.path.exists('ran') and os._exit(1); open('ran', 'w').close()"
    cells = run(tmp_path, "x = 1", deadly, "os._exit(1)", "x")
    assert cells[3].outputs[0].data["text/plain"] == "1"


def test_printing_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    cells = run(tmp_path, "for _ in range(100): print('x' * 99)", "print('y')", max_characters=1000)
    assert sum(len(output.text) for output in cells[0].outputs) <= 1000
    assert cells[1].outputs[0].text == "y\n"
