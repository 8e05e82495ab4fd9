"""nbgrader's Autograde for one student after another, on notebooks that were read before and run elsewhere.

``nbgrader autograde`` reads a submission, puts its cells in order, writes it to autograded/, reads it again,
runs it, and writes it a second time. Here the two halves are apart: ``read`` is the first, ``grade`` the
second, and the notebook stays in memory in between, while its cells run somewhere else.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from nbconvert.exporters import Exporter
from nbconvert.writers import FilesWriter
from nbformat import NotebookNode
from nbgrader.converters import Autograde
from nbgrader.utils import chdir, rmtree, setenv
from traitlets.utils.importstring import import_item

from ..nbgrader_plugin.execute import RunEveryCell, put_outputs
from ..nbgrader_plugin.patches import autograded_folder
from ..nbgrader_plugin.points import SaveVerdicts
from ..nbgrader_plugin.reading import version_of_files
from ..nbgrader_plugin.submissions import init_notebooks, problem_of, read_or_explain
from ..sandbox import Executed, PlannedCell, plan


class SubmissionError(Exception):
    """One submission cannot be graded; a sentence for the instructor."""


@dataclass(frozen=True)
class Prepared:
    """A submitted notebook with its cells put in order, and what nbgrader notes about whose it is."""

    path: Path
    notebook: NotebookNode
    resources: dict[str, Any]
    cells: list[PlannedCell]  # that are to be run: none where it cannot be read


Ran = Iterable[tuple[Prepared, Executed | None]]  # with what running it gave; None: there was nothing to run


class Grader(Autograde):
    """Reads one submission after another, and grades them when their cells have been run."""

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
        resources = self.init_single_notebook_resources(str(path))
        notebook = read_or_explain(path, self.log)
        # The notebook itself: an exporter's own method of this name gives it as text.
        notebook, resources = Exporter.from_notebook_node(self.reader, notebook, resources)
        return Prepared(path, notebook, resources, [] if problem_of(notebook) else plan(notebook))

    def grade(self, student: str, ran: Ran, commit: Callable[[], None]) -> None:
        """Grade one student's submission, graded before or not, by the steps of nbgrader's own methods.

        Those write what goes wrong into a log and raise something else. ``commit`` keeps the grades.
        """
        assignment, books = self.coursedir.assignment_id, list(ran)
        self.force, self.exporter = True, self.reader
        self.notebooks = [str(prepared.path) for prepared, _ in books]
        self.writer = FilesWriter(parent=self, config=self.config)
        self.coursedir.student_id = student  # for hooks
        try:
            with chdir(self.coursedir.root):
                self.init_destination(assignment, student)
                self.run_pre_convert_hook()
                self.init_assignment(assignment, student)
                for prepared, executed in books:
                    path = prepared.path
                    if version_of_files(path) != prepared.notebook.metadata.autograder.submitted:
                        raise SubmissionError(f"{path.name} was handed in again meanwhile. Start again.")
                    exporter, given = self._exporter(executed), (prepared.notebook, prepared.resources)
                    with setenv(NBGRADER_EXECUTION="autograde"):
                        output, resources = exporter.from_notebook_node(*given)
                    # The grades first: a notebook with the mark "finished" must never be without them.
                    commit()
                    self.write_single_notebook(output, resources)
                self.set_permissions(assignment, student)
                self.run_post_convert_hook()
        except BaseException:
            if (unfinished := autograded_folder(self, assignment, student)).exists():
                rmtree(str(unfinished))
            raise
        finally:
            self.coursedir.student_id = "*"

    def judged(self, prepared: Prepared, executed: Executed) -> NotebookNode:
        """The notebook after all steps of grading that come before its grades are saved."""
        exporter = self._exporter(executed, saving=False)
        notebook, _ = Exporter.from_notebook_node(exporter, prepared.notebook, prepared.resources)
        return notebook

    def _exporter(self, executed: Executed | None, *, saving: bool = True) -> Exporter:
        """What takes the steps of grading, with the outputs of cells that were run elsewhere."""
        # The notebook is validated once, after the last step.
        exporter = self.exporter_class(parent=self, config=self.config, optimistic_validation=True)
        for step in self.autograde_preprocessors:
            kind = import_item(step) if isinstance(step, str) else step
            if kind is SaveVerdicts and not saving:
                break
            instead = partial(self._put_outputs, executed) if kind is RunEveryCell else None
            exporter.register_preprocessor(instead or kind)
        return exporter

    def _put_outputs(
        self, executed: Executed | None, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        if problem_of(nb):
            return nb, resources
        sources = {index: cell.source for index, cell in enumerate(nb.cells) if cell.cell_type == "code"}
        if sources != (executed.sources if executed else {}):
            raise SubmissionError(
                f"{resources['nbgrader']['notebook']} has other cells than those that ran: please report it."
            )
        if executed:
            put_outputs(nb, executed, self.log)
        return nb, resources
