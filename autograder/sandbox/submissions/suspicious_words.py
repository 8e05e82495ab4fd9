"""Words in a student's code that are worth a look, because by them it could reach what grades it.

They are signs, not proofs: innocent code has some of them, and who looks for a way round finds one.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from functools import lru_cache

from ...roles import python_in

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
    *(f"autograder.sandbox.wire.{name}" for name in ("channel", "encode", "messages")),
}


def words_of_sharing(source: str) -> set[str]:
    """What in a student's code could change what is said about shared memory: a sign, not a proof."""
    return _words(source) & SHARING


def ways_inside(source: str) -> set[str]:
    """What in a student's code could change how its calls are watched: a sign, not a proof."""
    tree, others = python_in(source)
    functions: set[str] = set()
    modules = {"torch": "torch"}  # names → the modules that they come from
    assigned: set[str] = set()
    # What gives a timer the names of the notebook: `Timer("f()", globals=globals())`.
    innocent: set[int] = set()
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
    of_whom = {name: modules.get(name.split(".")[0], "").split(".")[0] for name in assigned}
    watching = {name for name, module in of_whom.items() if module in WATCHING}
    changed = {name for name in watching if not name.startswith("torch.backends.")}
    functions |= set(_names(others))
    return (_words(source) & INSIDE) | (functions & INSIDE_AS_FUNCTIONS) | changed


@lru_cache(maxsize=100)
def _words(source: str) -> set[str]:
    """The names that code uses, with dotted ones and what it imports; of what is no Python, all words."""
    tree, others = python_in(source)
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
