"""Small questions about the cells of an exercise notebook."""

from __future__ import annotations

from collections.abc import Iterable

from nbformat import NotebookNode


def nbgrader_data(cell: NotebookNode) -> dict:
    """The cell's nbgrader metadata; empty where it has none."""
    data = cell.metadata.get("nbgrader")
    return data if isinstance(data, dict) else {}


def is_test(cell: NotebookNode) -> bool:
    """Whether the cell runs a test that gives points."""
    data = nbgrader_data(cell)
    return cell.cell_type == "code" and bool(data.get("grade")) and not data.get("solution")


def solution_cells(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """The cells that students write in, by the name of the exercise, which is the cell's grade_id."""
    return {
        data["grade_id"]: cell for cell in notebook.cells if (data := nbgrader_data(cell)).get("solution")
    }


def exercise_of(grade_id: str, exercises: Iterable[str]) -> str | None:
    """The exercise that a test cell belongs to: ``one_hot`` for ``one_hot_check``."""
    return max((name for name in exercises if grade_id.startswith(f"{name}_")), key=len, default=None)
