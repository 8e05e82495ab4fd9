"""nbgrader's Autograde for one student after another, on notebooks that were read before and run elsewhere.

``nbgrader autograde`` reads a submission, puts its cells in order, writes it to autograded/, reads it again,
runs it, and writes it a second time. Here the two halves are apart: ``read`` is the first, ``grade`` the
second, and the notebook stays in memory in between, while its cells run somewhere else.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

from nbconvert.exporters import Exporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.converters import Autograde
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import rmtree, setenv
from traitlets.utils.importstring import import_item

from ..nbgrader_plugin.execute import RunEveryCell, put_outputs
from ..nbgrader_plugin.patches import autograded_folder, owner
from ..nbgrader_plugin.points import SaveVerdicts
from ..nbgrader_plugin.submissions import init_notebooks, problem_of, read_or_explain
from ..sandbox import Executed


class SubmissionError(Exception):
    """One submission cannot be graded; a sentence for the instructor."""


@dataclass(frozen=True)
class Prepared:
    """A submitted notebook with its cells put in order, and what nbgrader notes about whose it is.

    ``state`` tells whether the file is still the one that was read.
    """

    path: Path
    notebook: NotebookNode
    resources: dict[str, Any]
    state: tuple[int, ...] | None


class Grader(Autograde):
    """Reads one submission after another, and grades them when their cells have been run."""

    commit: Callable[[], None] = staticmethod(lambda: None)
    ran: Mapping[Path, tuple[Prepared, Executed | None]] = {}
    refused: Mapping[str, str] = {}  # by init_notebooks
    init_notebooks = init_notebooks  # cells run elsewhere

    @cached_property
    def reader(self) -> Exporter:
        """One for the whole class, so that the gradebook is asked once for the assignment's own cells."""
        reader = self.exporter_class(parent=self, config=self.config, optimistic_validation=True)
        for step in self.sanitize_preprocessors:
            reader.register_preprocessor(step)
        return reader

    def read(self, path: Path) -> Prepared:
        """The notebook at ``path``, or a page that says why there is none, with its cells in order."""
        state = _state(path)
        resources = self.init_single_notebook_resources(str(path))
        notebook = read_or_explain(path, self.log)
        # The notebook itself: an exporter's own method of this name gives it as text.
        notebook, resources = Exporter.from_notebook_node(self.reader, notebook, resources)
        return Prepared(path, notebook, resources, state)

    def grade(
        self, student: str, ran: Mapping[Path, tuple[Prepared, Executed | None]], commit: Callable[[], None]
    ) -> None:
        """Grade one student's submission, graded before or not.

        ``ran`` has its notebooks by their paths, each with what running it gave, or None where there was
        nothing to run. ``commit`` keeps the grades.
        """
        self.commit, self.ran, self.force = commit, ran, True
        self.coursedir.student_id = glob.escape(student)
        try:
            self.start()
        finally:
            self.coursedir.student_id, self.ran = "*", {}

    def convert_notebooks(self) -> None:
        """As nbgrader's method, which writes what goes wrong into a log and raises something else."""
        for folder, notebooks in self.assignments.items():
            assignment, student = owner(self, folder)
            self.notebooks = notebooks
            try:
                self.init_destination(assignment, student)
                self.run_pre_convert_hook()
                self.init_assignment(assignment, student)
                for notebook in notebooks:
                    self.convert_single_notebook(notebook)
                self.set_permissions(assignment, student)
                self.run_post_convert_hook()
            except BaseException:
                if (unfinished := autograded_folder(self, assignment, student)).exists():
                    rmtree(str(unfinished))
                raise

    def convert_single_notebook(self, notebook_filename: str) -> None:
        """The second half of what nbgrader's method of this name does."""
        prepared, executed = self.ran.get(Path(notebook_filename), (None, None))
        if prepared is None or _state(prepared.path) != prepared.state:
            raise SubmissionError(
                f"{os.path.basename(notebook_filename)} was handed in again while it was graded. The same "
                "command grades it."
            )
        # The notebook is validated once, after the last step.
        exporter = self.exporter_class(parent=self, config=self.config, optimistic_validation=True)
        self._register(exporter, self._steps(), executed)
        with setenv(NBGRADER_EXECUTION="autograde"):
            output, resources = exporter.from_notebook_node(prepared.notebook, prepared.resources)
        self.write_single_notebook(output, resources)

    def judged(self, prepared: Prepared, executed: Executed) -> NotebookNode:
        """The notebook after all steps of grading that come before its grades are saved."""
        exporter = self.exporter_class(parent=self, config=self.config)
        self._register(exporter, takewhile(lambda kind: kind is not SaveVerdicts, self._steps()), executed)
        notebook, _ = Exporter.from_notebook_node(exporter, prepared.notebook, prepared.resources)
        return notebook

    def _steps(self) -> Iterator[Any]:
        for step in self.autograde_preprocessors:
            yield import_item(step) if isinstance(step, str) else step

    def _register(self, exporter: Exporter, steps: Iterable[Any], executed: Executed | None) -> None:
        """Let an exporter take these steps, with the outputs of cells that were run elsewhere."""
        for kind in steps:
            exporter.register_preprocessor(
                TakeOutputs(executed, parent=exporter) if kind is RunEveryCell else kind
            )

    def write_single_notebook(self, output: str, resources: ResourcesDict) -> None:
        # The grades first: a notebook with the mark "finished" must never be without them.
        self.commit()
        super().write_single_notebook(output, resources)


class TakeOutputs(NbGraderPreprocessor):
    """Stands for RunEveryCell where the cells were run elsewhere."""

    def __init__(self, executed: Executed | None, **settings: Any) -> None:
        super().__init__(**settings)
        self.executed = executed

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        if problem_of(nb):
            return nb, resources
        sources = {index: cell.source for index, cell in enumerate(nb.cells) if cell.cell_type == "code"}
        if sources != (self.executed.sources if self.executed else {}):
            raise SubmissionError(
                f"{resources['nbgrader']['notebook']} has other cells than those that were run. Nothing was "
                "graded; please report this."
            )
        if self.executed:
            put_outputs(nb, self.executed, self.log)
        return nb, resources


def _state(path: Path) -> tuple[int, ...] | None:
    """What changes when a file is replaced; nothing where there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
