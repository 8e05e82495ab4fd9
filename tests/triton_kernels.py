"""Writes all Triton kernels that a script's cells launch, with the types they are launched with, as a module.

    TRITON_INTERPRET=1 python tests/triton_kernels.py SCRIPT MODULE

The module's ``LAUNCHED`` has for each kernel its signature and its constants.
"""

import inspect
import linecache
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import mangle_type

import autograder
from autograder.authoring.builder import build, code_cells
from autograder.authoring.colab import is_colab_cell
from autograder.measuring.duel import fresh_inputs

script, module = map(Path, sys.argv[1:])
launched: dict[str, tuple[Any, tuple, dict]] = {}
interpret = InterpretedFunction.run


def run(self: Any, *args: Any, **named: Any) -> Any:
    launched.setdefault(self.__name__, (self.fn, args, named))
    return interpret(self, *args, **named)


def check(function: Any, *, on: Any, raises: Any = None, **_: object) -> None:
    for case in [] if raises else [on] if callable(on) else on:
        function(*fresh_inputs(case, 1, "cpu"))


InterpretedFunction.run = run
autograder.check, autograder.race, autograder.compare = check, lambda *_, **__: None, lambda *_, **__: None
os.chdir(script.parent)
sys.path.insert(0, str(script.parent))
names: dict[str, Any] = {}
for cell in code_cells(build(script)):
    if not is_colab_cell(cell) and not cell.id.startswith("recordings"):
        linecache.cache[cell.id] = len(cell.source), None, cell.source.splitlines(keepends=True), cell.id
        exec(compile(cell.source, cell.id, "exec"), names)

parts, table = ["import triton", "import triton.language as tl"], {}
for name, (function, args, named) in launched.items():
    parameters = inspect.signature(function).parameters
    given = dict(zip(parameters, args, strict=False))
    given |= {key: named[key] for key in named if key in parameters}
    constants = {key: given[key] for key, one in parameters.items() if "constexpr" in str(one.annotation)}
    signature = {key: "constexpr" if key in constants else mangle_type(value) for key, value in given.items()}
    source = textwrap.dedent(inspect.getsource(function))
    parts.append(source if source.startswith("@") else f"@triton.jit\n{source}")
    table[name] = signature, constants
module.write_text("\n\n".join([*parts, f"LAUNCHED = {table!r}"]) + "\n", encoding="utf-8")
