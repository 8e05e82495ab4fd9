"""Small questions about the cells of an exercise notebook."""

from __future__ import annotations

import ast
import math
import re
import symtable
import warnings
from collections.abc import Iterable, Iterator
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

# Not what tells about the machine.
PROCESSES = re.compile(r"/proc/(?!(?:cpuinfo|loadavg|meminfo|stat|uptime|version)\b)")
NAME = re.compile(r"[A-Za-z_][\w.]*")
# No dotted name that is looked for has more, and all beginnings of a long one would take minutes.
MOST_PARTS = 8


def unusual_words(source: str) -> list[str]:
    """The names in a student's code, and folders of the system in its texts, that are worth a look."""
    return sorted(_words(source) & (UNUSUAL | {"/proc/"}))


def _parts(name: str) -> list[str]:
    """A dotted name's parts, and its beginnings, the name itself among them if it is not too long."""
    parts = name.split(".")
    return parts + [".".join(parts[:end]) for end in range(2, min(len(parts), MOST_PARTS) + 1)]


# Python 3.11 counts the depth of all threads' trees in one place, and fails now and then where two build one
# (github.com/python/cpython/issues/106905). What ``catch_warnings`` puts back belongs to all threads, too.
PARSING = Lock()

# By these, code could change how its own calls are watched. Much innocent code has them, too.
INSIDE = {
    *("__builtins__", "__closure__", "__code__", "__dict__", "__globals__", "__import__", "__subclasses__"),
    *("_thread", "attrgetter", "builtins", "f_back", "f_globals", "get_referrers", "gi_frame"),
    *("import_module", "importlib", "inspect", "methodcaller", "overrides", "tb_frame", "sys.modules"),
    *("DisableTorchFunction", "TorchDispatchMode", "TorchFunctionMode"),
}
INSIDE_AS_FUNCTIONS = {"delattr", "eval", "exec", "globals", "locals", "setattr", "vars"}
WATCHING = {"autograder", "collections", "contextlib", "threading", "torch", "weakref"}


# By these, it could change what its process says about the memory of a result.
SHARING = {
    *("Results", "_alias", "ctypes", "get_objects", "get_referrers", "mmap", "sys.modules"),
    *(
        "autograder.sandbox.wire.channel",
        "autograder.sandbox.wire.encode",
        "autograder.sandbox.wire.messages",
    ),
}


def words_of_sharing(source: str) -> set[str]:
    """What in a student's code could change what is said about shared memory: a sign, not a proof."""
    return _words(source) & SHARING


def ways_inside(source: str) -> set[str]:
    """What in a student's code could change how its calls are watched: a sign, not a proof."""
    tree, others = _python(source)
    functions: set[str] = set()
    modules = {"torch": "torch"}  # names → the modules that they come from
    assigned: set[str] = set()
    innocent: set[int] = (
        set()
    )  # what gives a timer the names of the notebook: `Timer("f()", globals=globals())`
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            modules |= {(one.asname or one.name).split(".")[0]: start + one.name for one in node.names}
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            assigned.add(_dotted(node))
        elif isinstance(node, ast.Call):
            innocent |= {id(one.value) for one in node.keywords if one.arg == "globals"}
            name = getattr(node.func, "id", "")
            if name != "globals" or id(node) not in innocent:
                functions.add(name)
    changed = {
        name
        for name in assigned
        if modules.get(name.split(".")[0], "").split(".")[0] in WATCHING
        and not name.startswith("torch.backends.")
    }
    functions |= set(_names(others))
    return (_words(source) & INSIDE) | (functions & INSIDE_AS_FUNCTIONS) | changed


@lru_cache(maxsize=100)
def _words(source: str) -> set[str]:
    """The names that code uses, with dotted ones and what it imports; of what is no Python, all words."""
    tree, others = _python(source)
    found = set(_names(others))
    asked: set[int] = set()  # the nodes of what is only asked for what is in it: `"torch" in sys.modules`
    for node in ast.walk(tree):
        match node:
            case ast.Compare(ops=[ast.In() | ast.NotIn(), *_]):
                asked.add(id(node.comparators[0]))
            case ast.Import():
                found.update(part for alias in node.names for part in _parts(alias.name))
            case ast.ImportFrom():
                found.update(part for one in node.names for part in _parts(f"{node.module}.{one.name}"))
            case ast.Attribute():
                found |= {node.attr} if id(node) in asked else {node.attr, _dotted(node, MOST_PARTS)}
            case ast.Name():
                found.add(node.id)
            case ast.Constant(value=str(text)) if PROCESSES.search(text):
                found.add("/proc/")
            case ast.Constant(value=str(text)) if text.startswith("_"):
                found.add(text)  # by such texts, `getattr` and dicts give what stands behind a name
    if PROCESSES.search(others):
        found.add("/proc/")
    return found


def defined_names(source: str) -> set[str]:
    """The names that a cell's code defines at its top level, imported ones left out."""
    code = next((text for text in (source, _without_commands(source)) if parsed(text)), "")
    symbols = symtable.symtable(code, "<cell>", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() and not symbol.is_imported()}


@lru_cache(maxsize=100)
def _python(source: str) -> tuple[ast.Module, str]:
    """A cell's Python code, and the text in it that is none: lines for IPython, or all of it."""
    if tree := parsed(source):
        return tree, ""
    if tree := parsed(_without_commands(source)):
        return tree, "\n".join(line for line in source.splitlines() if _is_command(line))
    return ast.Module([], []), source


def _without_commands(source: str) -> str:
    """A cell's lines, with the code alone in those that are for IPython."""
    return "\n".join(_python_in(line) if _is_command(line) else line for line in source.splitlines())


def _is_command(line: str) -> bool:
    """Whether a line may be for IPython: `%timeit f()`, `!ls`, `files = !ls`, `%%time`, `torch.sum?`."""
    line = line.strip()
    value = line.partition("=")[2].lstrip()
    return line.startswith(("%", "!", "?")) or line.endswith("?") or value.startswith(("%", "!"))


def _python_in(command: str) -> str:
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


def _names(text: str) -> Iterator[str]:
    """All that may be names in a text."""
    for name in NAME.findall(text):
        yield from _parts(name)


def _dotted(node: ast.expr, most: float = math.inf) -> str:
    """``a.b.c`` as text, of at most so many parts from its end; parts of other kinds are left out."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < most:
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id] if isinstance(node, ast.Name) else parts))


@lru_cache(maxsize=1000)
def calls_race(source: str) -> bool:
    """Whether a cell's code calls ``race``."""
    return any(
        isinstance(node, ast.Call) and getattr(node.func, "id", None) == "race"
        for node in ast.walk(_python(source)[0])
    )


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
