"""Run a chapter or a solution in a kernel of its own, to the end whatever fails.

``python benchmarks/gpu/kernel.py SCRIPT SECONDS`` prints what failed and what races gave, as JSON. It is a
process of its own, so that a notebook that hangs can be ended without harm to the run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from autograder.authoring.builder import build, line_that_raised
from autograder.authoring.colab import is_colab_cell
from autograder.judging.outcome import MIME


def run_script(script: Path, seconds: float) -> dict[str, Any]:
    """Run the notebook of a percent script; each cell has at most ``seconds``.

    Gives ``errors`` (a dictionary each: cell, line, error; a test that was not passed is one, too, unless it
    is a race that was run), ``races`` (test, outcome, and its laps), and as errors are given, the races that
    were ``undecided`` without a lap, because the machine was too noisy.
    """
    notebook = build(script)
    notebook.cells = [cell for cell in notebook.cells if not is_colab_cell(cell)]
    client = NotebookClient(
        notebook,
        timeout=max(1, int(seconds)),
        kernel_name="python3",
        resources={"metadata": {"path": str(script.parent)}},
        allow_errors=True,
        extra_arguments=["--log-level=ERROR"],
    )
    errors = []
    try:
        client.execute()
    except CellTimeoutError:
        errors.append({"cell": "", "line": "", "error": f"a cell took more than {seconds:.0f} s"})
    except DeadKernelError:
        errors.append({"cell": "", "line": "", "error": "the kernel died"})
    races, undecided = [], []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            card = output.get("data", {}).get(MIME)
            if output.output_type == "error":
                errors.append(_error(cell, output))
            elif card and card.get("laps"):
                races.append({"test": cell.id, "outcome": card["outcome"], "laps": card["laps"]})
            elif card and card["outcome"] in ("failed", "error", "not attempted"):
                errors.append({"cell": cell.id, "line": "", "error": f"{card['outcome']}: {card['message']}"})
            elif card and card["outcome"] == "undecided":
                undecided.append({"cell": cell.id, "line": "", "error": card["message"]})
    return {"errors": errors, "races": races, "undecided": undecided}


def _error(cell: NotebookNode, output: NotebookNode) -> dict[str, str]:
    line = line_that_raised("\n".join(output.traceback))
    first = next((line for line in cell.source.splitlines() if line.strip()), "")
    name = cell.id if cell.metadata.get("nbgrader") else f"{cell.id} ({first.strip()[:60]})"
    return {"cell": name, "line": ": ".join(line or ()), "error": f"{output.ename}: {output.evalue}"[:500]}


if __name__ == "__main__":
    print(json.dumps(run_script(Path(sys.argv[1]).resolve(), float(sys.argv[2]))))
