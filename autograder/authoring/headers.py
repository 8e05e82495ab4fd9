"""What a cell's header in a percent script says, and nbgrader's metadata that is made of it.

    # %% id="one_hot_note" role="test" points=2

CONTRIBUTING.md explains it. A test gives the points= of the check or race on its last line; its header has
points= only where its code has no such check or race.
"""

import ast
import json
import math
import re

from nbformat import NotebookNode

from ..roles import calls_of, parsed

ROLES = {
    "given": {"grade": False, "locked": True, "solution": False, "task": False},
    "answer": {"grade": False, "locked": False, "solution": True, "task": False},
    "test": {"grade": True, "locked": True, "solution": False, "task": False},
}
_NBGRADER = re.compile(r" nbgrader=(\{[^{}]*\})")


def apply_header(cell: NotebookNode) -> None:
    """Put nbgrader's metadata in place of the id, role and points that a cell's header gave.

    A cell whose header has none of them stays as it is. Raises ValueError, which says what is wrong.
    """
    metadata = cell.metadata
    if unread := metadata.get("incorrectly_encoded_metadata"):
        raise ValueError(f"its header cannot be read: {unread}")
    if "nbgrader" in metadata:
        raise ValueError('its header must say id="…" role="…" in place of nbgrader\'s own metadata')
    name, role, points = (metadata.pop(key, None) for key in ("id", "role", "points"))
    code = parsed(cell.source if cell.cell_type == "code" else "") or ast.Module([], [])
    calls = _giving_points(code)
    if name is role is points is None:
        if calls:
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
        metadata.nbgrader.points = _points(calls, code, points)
    elif calls or points is not None:
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
            if role == "test" and not _giving_points(parsed(code)):
                words["points"] = data.get("points")
            light = "".join(f" {key}={json.dumps(value)}" for key, value in words.items())
            return header[: found.start()] + light + header[found.end() :] + newline + code
    return cell


def _giving_points(code: ast.Module | None) -> dict[ast.Call, ast.expr]:
    """The calls of check and race with points=, and what they say; none where the code is no Python."""
    calls = calls_of(code, "check", "race")
    return {call: word.value for call in calls for word in call.keywords if word.arg == "points"}


def _points(calls: dict[ast.Call, ast.expr], code: ast.Module, said: object) -> int | float:
    """The points= of the check or race with which a test ends; else those that its header ``said``."""
    if calls:
        if said is not None:
            raise ValueError("both its code and its header have points=")
        # nbgrader reads what a cell is worth from the value of its last line.
        if not (isinstance(last := code.body[-1], ast.Expr) and [last.value] == list(calls)):
            raise ValueError("it must have one check or race with points=, as its last line")
        (value,) = calls.values()
        said = value.value if isinstance(value, ast.Constant) else ast.unparse(value)
    if said is None:
        raise ValueError("its code, read as Python, has no check or race with points=")
    if isinstance(said, bool) or not isinstance(said, (int, float)) or not 0 < said < math.inf:
        raise ValueError(f"its points must be a number above 0, not {said!r}")
    return int(said) if said == int(said) else said
