"""What a grade is for: which version of the tests, and of what was handed in.

Both are noted in the notebook while it is read, so that they are there with the grade or not at all.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from nbformat import NotebookNode

from ..roles import defined_names, nbgrader_data
from .reading import MOST_BYTES, NotPlain, extra_files, read_plain

KEPT = ("grade", "solution", "task", "locked")  # a cell with one of these is in the gradebook


def version_of_files(notebook: Path) -> str:
    """A short text that is another one as soon as a submitted notebook, or a file beside it, is."""
    try:
        content = read_plain(notebook, MOST_BYTES)
    except (NotPlain, OSError) as error:  # it says what there is instead
        content = repr(error).encode()
    beside = {
        name: None if data is None else _digest(data) for name, data in extra_files(notebook.parent).items()
    }
    return _digest(json.dumps([_digest(content), beside], sort_keys=True).encode())


def version_of_tests(cells: Iterable[NotebookNode]) -> str:
    """A short text that is another one as soon as what decides points is: the code of tests and given cells,
    their order, the points, the names that answers must define. Texts decide nothing.
    """
    return _digest(json.dumps(list(_deciding(cells).items())).encode())


def changed_cells(
    before: Iterable[NotebookNode], after: Iterable[NotebookNode]
) -> tuple[list[str], list[str]]:
    """What decides points and is different, in words, by cell: which came or went, and what else changed."""
    old, new = _deciding(before), _deciding(after)
    came_or_went = [f"{name} (gone)" for name in old if name not in new]
    came_or_went += [f"{name} (new)" for name in new if name not in old]
    changed = []
    for name in [name for name in new if name in old]:
        (old_code, old_points), (code, points) = old[name], new[name]
        how = [f"{_points(old_points)} → {_points(points)}"] if points != old_points else []
        how += ["other code"] if code != old_code else []
        changed += [f"{name} ({', '.join(how)})"] if how else []
    if not changed and not came_or_went and list(old) != list(new):
        changed.append("the order of the cells")
    return came_or_went, changed


def _deciding(cells: Iterable[NotebookNode]) -> dict[str, tuple[str, float | None]]:
    """The cells that decide points, by name: their code, and their points if they give any."""
    found: dict[str, tuple[str, float | None]] = {}
    for cell in cells:
        data = nbgrader_data(cell)
        if not any(data.get(kind) for kind in KEPT):
            continue
        points = float(data["points"]) if data.get("grade") or data.get("task") else None
        code = cell.source if cell.cell_type == "code" else ""
        if code and data.get("solution"):  # students write the rest of it
            code = " ".join(sorted(defined_names(code)))
        if code or points is not None:
            found[data["grade_id"]] = code, points
    return found


def _points(points: float | None) -> str:
    return "none" if points is None else f"{points:g} points"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
