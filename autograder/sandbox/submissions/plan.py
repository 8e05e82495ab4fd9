"""What is to be run of a notebook: its code cells, and whose each of them is."""

import ast
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...files import python_text
from ...roles import exercise_of, is_test, nbgrader_data, parsed, solution_cells
from ..wire.messages import Load, PlannedCell, Role

if TYPE_CHECKING:
    from nbformat import NotebookNode

_GRADIENT = re.compile(r"\bgrad\(|\bbackward\(|\bcheckpoint\b")


def plan(notebook: "NotebookNode") -> list[PlannedCell]:
    """The code cells of a restored notebook, in the order in which they run.

    That is the notebook's, but a student's cell that stands between two tests of an exercise runs before
    these tests, so that all of them test the same answer. Cells that are "given" and "test" are the
    instructor's; whatever else there is counts as the student's.
    """
    names = notebook.metadata.get("autograder", {}).get("names")
    exercises = solution_cells(notebook) if names is None else names
    ordered: list[PlannedCell] = []
    testing: str | None = ""  # the exercise whose tests come just now
    start = 0  # where these begin
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        data = nbgrader_data(cell)
        role: Role = "test" if is_test(cell) else "given" if data.get("locked") else "student"
        name = data.get("grade_id")
        exercise = (exercise_of(name, exercises) or name) if name and role == "test" else None
        known = None if names is None else list(names.get(exercise, []))
        if role == "given":
            testing = ""
        elif role == "test":
            if exercise != testing:
                testing, start = exercise, len(ordered)
            ordered[start:] = sorted(ordered[start:], key=lambda one: one.role == "test")
        ordered.append(PlannedCell(index, role, cell.source, name, exercise, known))
    return ordered


def modules(files: Mapping[str, bytes | None]) -> dict[str, str]:
    """The code of each module among the files beside a notebook, by its name."""
    found = {}
    for name, content in files.items():
        if content is not None and name.endswith(".py"):
            try:
                found[name] = python_text(content)
            except (SyntaxError, UnicodeError, LookupError):  # Python cannot read it either
                found[name] = content.decode(errors="replace")
    return found


def to_load(cells: list[PlannedCell]) -> Load:
    """What a fork server loads: the modules that the given cells import, and those of torch's late ones.

    A first gradient of some kinds loads 900: in each fork, where they would be memory of the answer's.
    """
    given = [cell.source for cell in cells if cell.role == "given"]
    modules = {"torch._dynamo"} if any(map(_GRADIENT.search, given)) else set[str]()
    for tree in filter(None, map(parsed, given)):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module)
    return Load(sorted(modules), given)
