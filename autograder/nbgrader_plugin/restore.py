"""Puts back what students must not change: test cells, read-only cells, nbgrader's notes on each cell."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode
from nbgrader.api import Gradebook, Notebook
from nbgrader.preprocessors import NbGraderPreprocessor

from ..roles import exercise_of, nbgrader_data, solution_cells
from .patches import remove_hidden_tests
from .submissions import NEW_CELL, problem_of, rebuilt

CHANGED = "# This cell had been changed. Its original was put back before grading.\n"
DELETED = "# This cell had been deleted. It was put back before grading.\n"


@dataclass(frozen=True)
class Original:
    """A cell as the gradebook keeps it, and its source as students got it, without hidden tests."""

    cell: NotebookNode
    released: str


Originals = Mapping[str, Original]


class RestoreCells(NbGraderPreprocessor):
    """Makes the locked cells what the gradebook says, wherever the student's notebook differs.

    It stands for nbgrader's DeduplicateIds and OverwriteCells. Those trust the metadata in the submission
    and the neighbours of a deleted cell: a spoiled entry or two deleted neighbours cost the whole grade.
    Each instance asks the gradebook once for the cells of a notebook.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._known: dict[tuple[str, str, str], Originals] = {}

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        names = resources["nbgrader"]
        key = (names["db_url"], names["assignment"], names["notebook"])
        if key not in self._known:
            self._known[key] = self.originals(*key)
        for remark in restore(nb, self._known[key]):
            self.log.info(remark)
        return nb, resources

    def originals(self, db_url: str, assignment: str, notebook: str) -> Originals:
        """The cells of a notebook as the gradebook keeps them."""
        with Gradebook(db_url) as gradebook:
            cells = original_cells(gradebook.find_notebook(notebook, assignment))
        return {name: Original(cell, self.as_released(cell)) for name, cell in cells.items()}

    def as_released(self, original: NotebookNode) -> str:
        """The source of a cell as students got it, without its hidden tests."""
        released = NotebookNode(source=original.source)
        remove_hidden_tests(released, self)
        return released.source


def restore(nb: NotebookNode, originals: Originals) -> list[str]:
    """Put the original cells into a notebook; gives a remark for each that had been changed or deleted."""
    remarks: list[str] = []
    present: dict[str, NotebookNode] = {}
    # From the end: where a student copied a cell, the last copy counts, as it does when cells run.
    for index in reversed(range(len(nb.cells))):
        name = nbgrader_data(nb.cells[index]).get("grade_id")
        nb.cells[index].metadata.pop("nbgrader", None)
        if isinstance(name, str) and name in originals and name not in present:
            nb.cells[index] = present[name] = _restored(nb.cells[index], originals[name], remarks)
    _add_deleted(nb, present, originals, remarks)
    return remarks


def _restored(cell: NotebookNode, original: Original, remarks: list[str]) -> NotebookNode:
    """The original of a locked cell; the student's answer with the original's metadata for any other."""
    data = original.cell.metadata.nbgrader
    if not data.locked:
        return rebuilt({**deepcopy(original.cell), "source": cell.source})
    if cell.source.strip() != original.released.strip():
        remarks.append(f"Cell {data.grade_id} had been changed; restoring it")
        return marked(deepcopy(original.cell), CHANGED)
    return deepcopy(original.cell)


def _add_deleted(
    nb: NotebookNode, present: dict[str, NotebookNode], originals: Originals, remarks: list[str]
) -> None:
    """Put each missing cell after those that came before it, and after its exercise's answer."""
    before: list[str | None] = []
    top = 1 if problem_of(nb) else 0
    for name, original in originals.items():
        data = original.cell.metadata.nbgrader
        if name not in present and (data.locked or data.grade or data.task):
            remarks.append(f"Cell {name} had been deleted; restoring it")
            earlier = [
                position(nb, present[other])
                for other in (*before, exercise_of(name, solution_cells(nb)))
                if other in present
            ]
            cell = deepcopy(original.cell)
            # A locked cell only: nbgrader tells by its source whether an answer was given.
            present[name] = marked(cell, DELETED) if data.locked and not problem_of(nb) else cell
            nb.cells.insert(max(earlier, default=top - 1) + 1, present[name])
        before.append(name)


def original_cells(notebook: Notebook) -> dict[str, NotebookNode]:
    """The cells that nbgrader keeps in the gradebook, by grade_id."""
    points = {cell.name: cell.max_score for cell in (*notebook.grade_cells, *notebook.task_cells)}
    tasks = {cell.name for cell in notebook.task_cells}
    solutions = {cell.name for cell in notebook.solution_cells}
    cells = {}
    for source in notebook.source_cells:
        data = {
            "grade_id": source.name,
            "grade": source.name in points and source.name not in tasks,
            "solution": source.name in solutions,
            "task": source.name in tasks,
            "locked": source.locked,
            "cell_type": source.cell_type,
            "checksum": source.checksum,
            "schema_version": 3,
        }
        if source.name in points:
            data["points"] = points[source.name]
        cells[source.name] = NEW_CELL[source.cell_type](source.source, metadata={"nbgrader": data})
    return cells


def marked(original: NotebookNode, remark: str) -> NotebookNode:
    """A code cell with a remark in its first line; any other cell as it is."""
    if original.cell_type == "code":
        original.source = remark + original.source
    return original


def position(nb: NotebookNode, cell: NotebookNode) -> int:
    """Where the cell is in the notebook (equal cells are not the same cell)."""
    return next(index for index, other in enumerate(nb.cells) if other is cell)
