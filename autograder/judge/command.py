"""The command ``python -m autograder race``: is one function of two files right, and fast enough?"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from .api import judge
from .sources import Source, SourceError

STATUS = {"faster": 0, "as fast": 0, "slower": 1, "undecided": 2, "wrong": 3, "not run": 4}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(STATUS["not run"], f"error: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m autograder race",
        description="Judge whether a function of NEW gives what that of OLD gives, and is fast enough. "
        "Exit status: 0 fast enough, 1 not, 2 undecided, 3 wrong result, 4 not judged.",
    )
    parser.add_argument("new", metavar="NEW", help="the file with the answer; it runs in a sandbox")
    parser.add_argument("old", metavar="OLD", help="the file with the given version, and with the inputs")
    parser.add_argument("--at-least", type=float, required=True, metavar="RATIO", help="as in 1.5")
    parser.add_argument("--function", metavar="NAME", help="in both (default: the one that both define)")
    parser.add_argument("--inputs", default="inputs", metavar="NAME", help="in OLD (default: inputs)")
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
    parser.add_argument("--trusted", action="store_true", help="code of your own: without a sandbox")
    parser.add_argument("--json", action="store_true", help="print the whole verdict as JSON")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Judge, and print the verdict; the exit status says it, too."""
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        name = options.function or _in_both(options.new, options.old, options.inputs)
        verdict = judge(
            f"{options.new}:{name}",
            f"{options.old}:{name}",
            f"{options.old}:{options.inputs}",
            at_least=options.at_least,
            device=options.device,
            trusted=options.trusted,
            tell=lambda doing: _show(f"{doing} …"),
        )
    except (TypeError, ValueError, OSError, SourceError) as error:
        parser.error(str(error))
    finally:
        _show("")
    if options.json:
        print(json.dumps(asdict(verdict)))
    elif verdict.word != "not run":
        print(verdict)
    if verdict.word == "not run":
        parser.error(verdict.why)
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
        raise ValueError(f"{path} is no Python file: {error}") from None
    return {node.name for node in body if isinstance(node, ast.FunctionDef) and node.name[0] != "_"}


def _show(doing: str) -> None:
    """Have this on the last line of a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{doing}\r", end="", file=sys.stderr, flush=True)
