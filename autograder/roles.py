"""Small questions about the cells of an exercise notebook."""

from __future__ import annotations

import ast
import re
import symtable
import warnings
from collections.abc import Iterable
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode

# How the cell begins that fetches the course on Google Colab and Kaggle.
FETCHES_COURSE = (
    "# Only for Google Colab and Kaggle: this cell fetches the course. Anywhere else it does nothing."
)
# The names of the errors that grading writes into a notebook; their text is for the student.
TIMED_OUT, PROCESS_ENDED, NOT_RUN = "TimeLimit", "ProcessEnded", "NotRun"

# Python 3.11 counts the depth of all threads' trees in one place, and fails now and then where two build one
# (github.com/python/cpython/issues/106905). What ``catch_warnings`` puts back belongs to all threads, too.
PARSING = Lock()


def defined_names(source: str) -> set[str]:
    """The names that a cell's code defines at its top level, imported ones left out."""
    code = next((text for text in (source, _without_commands(source)) if parsed(text)), "")
    symbols = symtable.symtable(code, "<cell>", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() and not symbol.is_imported()}


@lru_cache(maxsize=100)
def python_in(source: str) -> tuple[ast.Module, str]:
    """A cell's Python code, and the text in it that is none: lines for IPython, or all of it."""
    if tree := parsed(source):
        return tree, ""
    if tree := parsed(_without_commands(source)):
        return tree, "\n".join(line for line in source.splitlines() if _is_command(line))
    return ast.Module([], []), source


def _without_commands(source: str) -> str:
    """A cell's lines, with the code alone in those that are for IPython."""
    return "\n".join(_in_command(line) if _is_command(line) else line for line in source.splitlines())


def _is_command(line: str) -> bool:
    """Whether a line may be for IPython: `%timeit f()`, `!ls`, `files = !ls`, `%%time`, `torch.sum?`."""
    line = line.strip()
    value = line.partition("=")[2].lstrip()
    return line.startswith(("%", "!", "?")) or line.endswith("?") or value.startswith(("%", "!"))


def _in_command(command: str) -> str:
    """The code that a line for IPython has IPython run, as in `%timeit f()`; `pass` where there is none."""
    line = command.lstrip()
    code = re.sub(r"^%+\w+( +-\w+)* *", "", line)
    return command[: -len(line)] + (code if code != line and code and parsed(code) else "pass")


def parsed(source: str) -> ast.Module | None:
    """The code as a tree; None where it is no Python."""
    try:
        with PARSING, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # thousands of them, if the source has so many odd texts
            tree = ast.parse(source)
            symtable.symtable(source, "<cell>", "exec")  # finds what cannot be compiled
        return tree
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=1000)
def calls_race(source: str) -> bool:
    return bool(calls_of(python_in(source)[0], "race"))


def calls_of(code: ast.AST | None, *names: str) -> list[ast.Call]:
    """The calls of functions with these names in a piece of code, if there is any."""
    calls = (node for node in (ast.walk(code) if code else ()) if isinstance(node, ast.Call))
    return [call for call in calls if getattr(call.func, "id", None) in names]


def nbgrader_data(cell: NotebookNode) -> dict:
    """The cell's nbgrader metadata; empty where it has none."""
    data = cell.metadata.get("nbgrader")
    return data if isinstance(data, dict) else {}


def is_test(cell: NotebookNode) -> bool:
    """Whether the cell runs a test that gives points."""
    data = nbgrader_data(cell)
    return cell.cell_type == "code" and bool(data.get("grade")) and not data.get("solution")


def fetches_course(cell: NotebookNode) -> bool:
    """Whether the cell is there for Google Colab and Kaggle alone, by its first line."""
    return cell.cell_type == "code" and cell.source.startswith(FETCHES_COURSE) and not nbgrader_data(cell)


def solution_cells(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """The cells that students write in, by the name of the exercise, which is the cell's grade_id."""
    return {
        data["grade_id"]: cell for cell in notebook.cells if (data := nbgrader_data(cell)).get("solution")
    }


def exercise_of(grade_id: str, exercises: Iterable[str]) -> str | None:
    """The exercise that a test cell belongs to: ``one_hot`` for ``one_hot_check``."""
    return max((name for name in exercises if grade_id.startswith(f"{name}_")), key=len, default=None)
