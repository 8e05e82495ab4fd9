"""Puts the outputs of its cells into a submission: it has them run where a student's code can do no harm."""

from __future__ import annotations

import atexit
import functools
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Float, Integer

from ..roles import NOT_RUN
from ..sandbox import Executed, Sandbox, plan
from .submissions import problem_of

# Submissions that were run elsewhere, by assignment, student and name of the notebook.
executed: dict[tuple[str, str, str], Executed] = {}


class RunEveryCell(NbGraderPreprocessor):
    """Stands for nbgrader's Execute: runs all cells, whatever they do to the process they run in.

    A student's code and the tests run in different processes (``isolated``). What was run elsewhere, and put
    into ``executed``, is taken from there if its cells are the same.
    """

    timeout = Float(60, help="Seconds for one cell.").tag(config=True)
    notebook_timeout = Float(600, help="Seconds for all cells of one notebook.").tag(config=True)
    max_restarts = Integer(10, help="How many fresh processes one notebook may need.").tag(config=True)
    require_sandbox = Bool(False, help="Refuse to run submissions without bubblewrap.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        if problem_of(nb):
            return nb, resources
        names = resources.get("nbgrader", {})
        cells = plan(nb)
        found = executed.pop(tuple(names.get(key, "") for key in ("assignment", "student", "notebook")), None)
        if found is None or found.sources != {cell["index"]: cell["source"] for cell in cells}:
            found = self.run(cells, names.get("assignment", ""))
        for event in found.events:
            self.log.warning("Suspicious: cell %s: %s", event["cell"], event["what"])
        for number, index in enumerate((cell["index"] for cell in cells), 1):
            nb.cells[index].execution_count = number
            nb.cells[index].outputs = outputs_of(found, index)
            for output in nb.cells[index].outputs:
                if output.output_type == "execute_result":
                    output.execution_count = number
        nb.metadata.setdefault("autograder", NotebookNode()).update(
            events=found.events, seconds=found.seconds, noise=found.noise, sandboxed=found.sandboxed
        )
        return nb, resources

    def run(self, cells: list[dict], assignment: str) -> Executed:
        """Run the cells now, in this machine's sandbox; a race that noise left open gets a second try."""
        box = sandbox(self.require_sandbox)
        limits = {
            "cell_seconds": self.timeout,
            "notebook_seconds": self.notebook_timeout,
            "most_restarts": self.max_restarts,
        }
        first = box.run(cells, assignment=assignment, **limits)
        if box.warning:
            self.log.warning("%s", box.warning)
        if not first.undecided:
            return first
        return first.merged(box.run(cells, assignment=assignment, only=first.undecided, **limits))


@functools.cache
def sandbox(require: bool) -> Sandbox:
    """This process's sandbox; it ends with the process."""
    box = Sandbox(require=require)
    atexit.register(box.close)
    return box


def outputs_of(found: Executed, index: int) -> list[NotebookNode]:
    """The outputs of a cell; where there is no record of it, an error that says so."""
    if index not in found.outputs:
        why = "Not run: the process that judges this notebook ended before."
        return [new_output("error", ename=NOT_RUN, evalue=why, traceback=[why])]
    return [nbformat.from_dict(output) for output in found.outputs[index]]
