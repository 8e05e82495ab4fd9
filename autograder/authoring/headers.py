"""What a cell's header in a percent script says, and nbgrader's metadata that is made of it.

    # %% id="one_hot_given" role="given"
    # %% id="one_hot" role="answer"
    # %% id="one_hot_check" role="test"
    # %% id="one_hot_note" role="test" points=2

Students may not change what is given, and write in the answer. A test gives the points= of the check or race
on its last line; its header has points= only where its code has no such check or race.
"""

from __future__ import annotations

import ast
import json
import math
import re

from nbformat import NotebookNode

ROLES = {
    "given": {"grade": False, "locked": True, "solution": False, "task": False},
    "answer": {"grade": False, "locked": False, "solution": True, "task": False},
    "test": {"grade": True, "locked": True, "solution": False, "task": False},
}
_NBGRADER = re.compile(r" nbgrader=(\{[^{}]*\})")


def apply_header(cell: NotebookNode) -> None:
    """Put nbgrader's metadata in place of the id, role and points that a cell's header gave.

    A cell whose header has none of them stays as it is. Raises ValueError, whose message says what is wrong
    with the cell.
    """
    metadata = cell.metadata
    if unread := metadata.get("incorrectly_encoded_metadata"):
        raise ValueError(f"its header cannot be read: {unread}")
    if "nbgrader" in metadata:
        raise ValueError('its header must say id="…" role="…" in place of nbgrader\'s own metadata')
    name, role, points = (metadata.pop(key, None) for key in ("id", "role", "points"))
    code = _code(cell.source) if cell.cell_type == "code" else ast.Module([], [])
    gives_points = bool(_points_words(code))
    if name is role is points is None:
        if gives_points:
            raise ValueError('its code gives points, but its header has no role="test"')
        return
    if role not in list(ROLES):
        raise ValueError(f"its header must have a role: {', '.join(ROLES)}; {role!r} is none")
    if not (isinstance(name, str) and name):
        raise ValueError("its header must have an id, in quotation marks")
    if cell.cell_type != "code":
        raise ValueError("it is text, and only code has a role")
    metadata.nbgrader = NotebookNode(grade_id=name, schema_version=3, **ROLES[role])
    if role == "test":
        if gives_points and points is not None:
            raise ValueError("both its code and its header have points=")
        metadata.nbgrader.points = _points(code) if gives_points else _number(points)
    elif gives_points or points is not None:
        raise ValueError(f"only a test gives points, and its role is {role}")


def lighter(script: str) -> str:
    """A percent script with id= and role= where headers hold nbgrader's metadata, as Jupytext writes them.

    Points are left out where the code has them. What is none of the ROLES, or stands beside one, stays.
    """
    return "".join(map(_lighter_cell, re.split(r"(?m)^(?=# %%)", script)))


def _lighter_cell(cell: str) -> str:
    header, newline, code = cell.partition("\n")
    found = _NBGRADER.search(header)
    if not found or " role=" in header:
        return cell
    try:
        data = {"task": False, **json.loads(found[1])}
    except ValueError:
        return cell
    for role, flags in ROLES.items():
        if flags.items() <= data.items():
            words = {"id": data.get("grade_id"), "role": role}
            if role == "test" and not _points_words(_code(code)):
                words["points"] = data.get("points")
            light = "".join(f" {key}={json.dumps(value)}" for key, value in words.items())
            return header[: found.start()] + light + header[found.end() :] + newline + code
    return cell


def _code(source: str) -> ast.Module:
    """A cell's code; nothing where IPython's own commands keep it from being Python."""
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Module([], [])


def _points_words(code: ast.Module) -> list[ast.keyword]:
    """The points=… in all calls of check and race."""
    return [
        word
        for node in ast.walk(code)
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in {"check", "race"}
        for word in node.keywords
        if word.arg == "points"
    ]


def _points(code: ast.Module) -> int | float:
    """The points= of the check or race with which a test cell ends."""
    first, *more = _points_words(code)
    last = code.body[-1]
    if more or not (
        isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and first in last.value.keywords
    ):
        # nbgrader reads what a cell is worth from the value of its last line.
        raise ValueError("it must have one check or race with points=, as its last line")
    return _number(first.value.value if isinstance(first.value, ast.Constant) else ast.unparse(first.value))


def _number(points: object) -> int | float:
    if points is None:
        raise ValueError("its code, read as Python, has no check or race with points=")
    if isinstance(points, bool) or not isinstance(points, (int, float)) or not 0 < points < math.inf:
        raise ValueError(f"its points must be a number above 0, not {points!r}")
    return int(points) if points == int(points) else points
