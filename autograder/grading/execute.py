"""Runs the cells of a submission, whatever they do to the kernel they run in."""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from jupyter_client.manager import KernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import Execute
from traitlets import Integer

from .cells import exercise_of, is_test, solution_cells
from .submissions import problem_of

# The names of the errors that this module writes into a notebook; their text is for the student.
TIMED_OUT, PROCESS_ENDED, NOT_RUN = "TimeLimit", "ProcessEnded", "NotRun"

ENDED = (
    "This cell ended the Python process that it ran in. Possible causes: a call such as `exit()` or "
    "`os._exit()`, more memory than there is, or a crash inside a library. The cells after it ran in a fresh "
    "process, in which the earlier cells were run again."
)


class RunEveryCell(Execute):
    """nbgrader's Execute, which goes on in a fresh kernel when a cell ends the kernel or cannot be stopped.

    In the fresh kernel the earlier cells run again, except for test cells and those that took too long or
    ended the kernel. An exercise whose test did so is not tested further. All of it together takes at most
    ``notebook_timeout``.
    """

    notebook_timeout = Integer(600, help="Seconds for all cells of one notebook.").tag(config=True)
    max_restarts = Integer(10, help="How many fresh kernels one notebook may need.").tag(config=True)
    max_characters = Integer(1_000_000, help="How much of a cell's printed text is kept.").tag(config=True)

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any], km: Any = None
    ) -> tuple[NotebookNode, dict[str, Any]]:
        if problem_of(nb):
            return nb, resources
        self.timeout_func = self.seconds_for
        self.deadline = monotonic() + self.notebook_timeout
        self.exercises = solution_cells(nb)
        self.given_up: dict[str, str] = {}  # exercise → the test that ended its tests
        self.replay: list[int] = []  # the cells that a fresh kernel must run again
        self.kernel_lost = False
        self.restarts = 0
        with TemporaryDirectory(prefix="kernel-") as self.sockets:
            return super().preprocess(nb, resources, km)

    def create_kernel_manager(self) -> KernelManager:
        manager = super().create_kernel_manager()
        if manager.transport == "ipc":
            # The default is a relative path, which the kernel looks for in its own working directory.
            manager.ip = os.path.join(self.sockets, str(self.restarts))
        return manager

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        if cell.cell_type != "code":
            return cell, resources
        exercise = exercise_of(cell.metadata.nbgrader.grade_id, self.exercises) if is_test(cell) else None
        if exercise in self.given_up:
            why = f"Not run, because the test `{self.given_up[exercise]}` above did not end by itself."
            cell.outputs = [problem(NOT_RUN, why)]
            return cell, resources
        self.start_again()
        if self.kernel_lost or monotonic() > self.deadline:
            cell.outputs = [problem(NOT_RUN, self.out_of_patience())]
        elif not self.survives(cell, index):
            if exercise:
                self.given_up[exercise] = cell.metadata.nbgrader.grade_id
        elif not is_test(cell):
            self.replay.append(index)
        return cell, resources

    def survives(self, cell: NotebookNode, index: int) -> bool:
        """Run one cell; whether it ended in time and the kernel still runs. If not, its outputs say why."""
        self.characters = 0
        limit = self.seconds_for(cell)
        too_long = (
            f"This cell ran longer than {limit:.0f} seconds, the time limit, and was stopped. "
            "Look for a loop that never ends, or for work that grows too fast with the size of the input."
        )
        self.error_on_timeout = {"ename": TIMED_OUT, "evalue": too_long, "traceback": [too_long]}
        try:
            self.execute_cell(cell, index, store_history=True)
            return not timed_out(cell)
        except CellTimeoutError:
            cell.outputs.append(problem(TIMED_OUT, too_long + " It did not react to being interrupted."))
        except DeadKernelError:
            cell.outputs.append(problem(PROCESS_ENDED, ENDED))
        self.kernel_lost = True
        return False

    def start_again(self) -> None:
        """After a lost kernel: start a fresh one and run the earlier cells in it."""
        while self.kernel_lost and self.restarts < self.max_restarts and monotonic() < self.deadline:
            self.restarts += 1
            self.log.warning("Starting a fresh kernel (%d of at most %d)", self.restarts, self.max_restarts)
            self._cleanup_kernel()
            self.create_kernel_manager()
            self.start_new_kernel()
            self.start_new_kernel_client()
            self.kernel_lost = False
            for index in list(self.replay):
                cell = self.nb.cells[index]
                outputs = cell.outputs
                if not self.survives(cell, index):
                    self.replay.remove(index)
                cell.outputs = outputs
                if self.kernel_lost:
                    break

    def seconds_for(self, cell: NotebookNode) -> float:
        """How long the cell may run: the limit for a cell, or what is left of the notebook's."""
        left = max(1.0, self.deadline - monotonic())
        return min(self.timeout, left) if self.timeout and self.timeout > 0 else left

    def out_of_patience(self) -> str:
        """Why no more cells are run."""
        if self.kernel_lost and self.restarts >= self.max_restarts:
            return f"Not run: the Python process had to be started again {self.restarts} times before."
        return f"Not run: the notebook had used up its {self.notebook_timeout} seconds."

    def on_cell_executed(self, **kwargs: Any) -> None:
        super().on_cell_executed(**kwargs)
        # A kernel that was told to exit still answers for a moment, and the next cell would get the blame.
        payload = kwargs["execute_reply"]["content"].get("payload", [])
        if any(item.get("source") == "ask_exit" for item in payload):
            raise DeadKernelError("The cell called exit().")

    def output(self, outs: list, msg: dict, display_id: str | None, cell_index: int) -> NotebookNode | None:
        # A loop that prints without end would fill the grader's memory before its time is up.
        if msg["msg_type"] == "stream":
            self.characters += len(msg["content"]["text"])
            if self.characters > self.max_characters:
                return None
        return super().output(outs, msg, display_id, cell_index)


def problem(name: str, message: str) -> NotebookNode:
    """An error output that tells the student what happened."""
    return new_output("error", ename=name, evalue=message, traceback=[message])


def timed_out(cell: NotebookNode) -> bool:
    """Whether the cell ran into its time limit."""
    return any(output.output_type == "error" and output.ename == TIMED_OUT for output in cell.outputs)
