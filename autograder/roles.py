"""Small questions about the cells of an exercise notebook."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode

# The names of the errors that grading writes into a notebook; their text is for the student.
TIMED_OUT, PROCESS_ENDED, NOT_RUN = "TimeLimit", "ProcessEnded", "NotRun"


# An answer has no need of these; what it might do with them is worth a look.
UNUSUAL = {
    "autograder.judging",
    "autograder.measuring",
    "autograder.nbgrader_plugin",
    "autograder.sandbox",
    "_disable_current_modes",
    "_python_dispatch",
    "_C",
    "_getframe",
    "get_objects",
    "ctypes",
    "settrace",
    "setprofile",
}


def unusual_words(source: str) -> list[str]:
    """The names in a student's code, and folders of the system in its texts, that are worth a look."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # IPython's own commands
        return sorted(word for word in UNUSUAL if word in source)
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Import):
            found.update(part for alias in node.names for part in _parts(alias.name))
        elif isinstance(node, ast.ImportFrom):
            found.update(part for a in node.names for part in _parts(f"{node.module}.{a.name}"))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "/proc/" in node.value:
            found.add("/proc/")
    return sorted(found & (UNUSUAL | {"/proc/"}))


def _parts(name: str) -> list[str]:
    """A dotted name, its parts, and its beginnings."""
    parts = name.split(".")
    return parts + [".".join(parts[:end]) for end in range(2, len(parts) + 1)]


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
