"""What is to be run of a notebook: its code cells, and whose each of them is."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..roles import exercise_of, is_test, nbgrader_data, solution_cells

if TYPE_CHECKING:
    from nbformat import NotebookNode


def plan(notebook: NotebookNode) -> list[dict[str, Any]]:
    """The code cells of a restored notebook as plain data, with the fields of ``messages.PlannedCell``.

    "given" cells and "test" cells are the instructor's; whatever else there is counts as the student's.
    """
    exercises = solution_cells(notebook)
    cells: list[dict[str, Any]] = []
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        data = nbgrader_data(cell)
        role = "test" if is_test(cell) else "given" if data.get("locked") else "student"
        name = data.get("grade_id")
        exercise = (exercise_of(name, exercises) or name) if name and role == "test" else None
        cells.append(
            {"index": index, "role": role, "source": cell.source, "grade_id": name, "exercise": exercise}
        )
    return cells


def imported_modules(sources: list[str]) -> list[str]:
    """The modules that these cells import."""
    found: set[str] = set()
    for source in sources:
        with suppress(SyntaxError):  # IPython's own commands
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Import):
                    found.update(alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module)
    return sorted(found)
