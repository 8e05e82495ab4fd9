"""The limits on one notebook as a whole, and what a cell shows."""

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from autograder.nbgrader_plugin.execute import RunEveryCell

pytestmark = [pytest.mark.slow, pytest.mark.needs("bubblewrap")]


def run(*sources: str, **limits: float):
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    RunEveryCell(**limits).preprocess(notebook, {})
    return notebook.cells


def test_fresh_processes_are_limited() -> None:
    cells = run("import os", "os._exit(1)", "os.getpid()", "os._exit(1)", "1", max_restarts=1)
    assert "This cell ended the Python process" in cells[1].outputs[0].evalue
    assert cells[2].outputs[0].output_type == "execute_result"  # the import ran again
    assert cells[4].outputs[0].ename == "NotRun"
    assert "started again 1 times" in cells[4].outputs[0].evalue
    deadly = "import os, time; time.time() > LATER and os._exit(1)"  # it only dies when it is run again
    cells = run("import time; LATER = time.time() + 0.3; x = 1", deadly, "time.sleep(0.4); os._exit(1)", "x")
    assert cells[3].outputs[0].data["text/plain"] == "1"


def test_the_time_for_a_notebook_is_limited() -> None:
    cells = run("1", "while True: pass", "2", timeout=60, notebook_timeout=2)
    assert [output.output_type for output in cells[0].outputs] == ["execute_result"]
    assert cells[1].outputs[-1].ename == "TimeLimit"
    assert cells[2].outputs[0].evalue == "Not run: the notebook had used up its 2 seconds."


def test_text_from_everywhere_is_kept_and_pictures_too() -> None:
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"
    cells = run("import os, sys\nprint('a')\nprint('b', file=sys.stderr)\nos.write(1, b'c');", plot, "1 / 0")
    said = [(output.name, output.text) for output in cells[0].outputs]
    assert said == [("stdout", "a\n"), ("stderr", "b\n"), ("stdout", "c")]
    assert any("image/png" in output.get("data", {}) for output in cells[1].outputs)
    assert cells[2].outputs[0].ename == "ZeroDivisionError"
