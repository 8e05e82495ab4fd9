"""Puts the outputs of its cells into a submission: it has them run where a student's code can do no harm."""

import logging
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.converters import Autograde, NbGraderException
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Float, Integer

from ..roles import NOT_RUN
from ..sandbox import Executed, plan, shared_sandbox
from .patches import submitted_folder
from .reading import extra_files
from .submissions import init_notebooks, problem_of


class RunEveryCell(NbGraderPreprocessor):
    """Stands for nbgrader's Execute: runs all cells in the sandbox, whatever they do to their process."""

    timeout = Float(60, help="Seconds for one cell.").tag(config=True)
    notebook_timeout = Float(600, help="Seconds for all cells of one notebook.").tag(config=True)
    max_restarts = Integer(10, help="How many fresh processes one notebook may need.").tag(config=True)
    without_sandbox = Bool(
        False, help="Run submissions where bubblewrap does not work, with this account's rights, too."
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        if problem_of(nb):
            return nb, resources
        names, converter = resources.get("nbgrader"), getattr(self.parent, "parent", None)
        assignment, files = "", {}
        if names and converter:
            assignment = names["assignment"]
            files = extra_files(submitted_folder(converter, assignment, names["student"]))
        box = shared_sandbox(self.without_sandbox)
        executed = box.run_to_the_end(plan(nb), assignment=assignment, files=files, **self.limits())
        if box.warning:
            self.log.warning("%s", box.warning)
        put_outputs(nb, executed, self.log)
        return nb, resources

    def limits(self) -> dict[str, Any]:
        """The limits that the course's settings set, as ``Sandbox.run`` takes them."""
        return {
            "cell_seconds": self.timeout,
            "notebook_seconds": self.notebook_timeout,
            "most_restarts": self.max_restarts,
        }


def list_where_cells_may_run(self: Autograde) -> None:
    """As ``init_notebooks``, for a command that runs cells. Raises NbGraderException where none may run."""
    if refusal := shared_sandbox(RunEveryCell(parent=self).without_sandbox).refusal:
        self.log.error("%s", refusal)
        raise NbGraderException(refusal)
    init_notebooks(self)


def put_outputs(nb: NotebookNode, executed: Executed, log: logging.Logger) -> None:
    """Put what running the cells of a notebook gave into it; suspicious events go to the log, too."""
    for event in executed.events:
        log.warning("Suspicious: cell %s: %s", event["cell"], event["what"])
    why = "Not run: the process that judges this notebook ended before."
    not_run = [new_output("error", ename=NOT_RUN, evalue=why, traceback=[why])]
    for number, index in enumerate(executed.sources, 1):
        nb.cells[index].execution_count = number
        outputs = executed.outputs.get(index, not_run)  # there may be no record of it
        nb.cells[index].outputs = list(map(nbformat.from_dict, outputs))
        for output in nb.cells[index].outputs:
            if output.output_type == "execute_result":
                output.execution_count = number
    nb.metadata.setdefault("autograder", NotebookNode()).update(
        events=executed.events, seconds=executed.seconds, noise=executed.noise, sandboxed=executed.sandboxed
    )
