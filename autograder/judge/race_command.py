"""The command ``python -m autograder race``: is one function of two files right, and fast enough?"""

import ast
import os
import sys
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Any

from ..command_line import CommandError, command, option
from .function_files import Source, SourceError

STATUS = {"faster": 0, "as fast": 0, "slower": 1, "undecided": 2, "wrong": 3, "not run": 4}


@command(
    "race",
    option("new", metavar="NEW", help="the file with the answer; it runs in a sandbox"),
    option("old", metavar="OLD", help="the file with the given version, and with the inputs"),
    option("--at-least", type=float, required=True, metavar="RATIO", help="as in 1.5"),
    option("--function", metavar="NAME", help="in both (default: the one that both define)"),
    option("--inputs", default="inputs", metavar="NAME", help="in OLD (default: inputs)"),
    option("--device", default="cpu", help="cpu (default) or cuda"),
    option("--trusted", action="store_true", help="code of your own: without a sandbox"),
    option("--json", action="store_true", help="print the whole verdict as JSON"),
    more="Exit status: 0 fast enough, 1 not, 2 undecided, 3 wrong result, 4 not judged.",
    failed=STATUS["not run"],
)
def main(new: str, old: str, function: str | None, inputs: str, json: bool, **asked: Any) -> int:
    if not asked["trusted"]:  # an answer may lie here, and beside it what Python would take for a package
        sys.path[:] = [folder for folder in sys.path if folder not in ("", os.getcwd())]
    from .api import judge

    try:
        name = function or _in_both(new, old, inputs)
        verdict = judge(
            f"{new}:{name}",
            f"{old}:{name}",
            f"{old}:{inputs}",
            tell=lambda doing: _show(f"{doing} …"),
            **asked,
        )
    except (TypeError, ValueError, SourceError) as error:
        raise CommandError(str(error)) from None
    finally:
        _show("")
    if json:
        print(dumps(asdict(verdict)))
    elif verdict.word != "not run":
        print(verdict)
    if verdict.word == "not run":
        raise CommandError(verdict.why)
    return STATUS[verdict.word]


def _in_both(new: str, old: str, inputs: str) -> str:
    """The one public function that both files define."""
    both = set.intersection(*map(_functions, (new, old))) - {inputs}
    if len(both) != 1:
        there = f"both define {', '.join(sorted(both))}" if both else "have no function in common"
        raise ValueError(f"{new} and {old} {there}: name one with --function.")
    return both.pop()


def _functions(path: str) -> set[str]:
    try:
        body = ast.parse(Source(Path(path), "").text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{path} is no Python file: {error or type(error).__name__}") from None
    return {node.name for node in body if isinstance(node, ast.FunctionDef) and node.name[0] != "_"}


def _show(doing: str) -> None:
    """Have this on the last line of a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{doing}\r", end="", file=sys.stderr, flush=True)
