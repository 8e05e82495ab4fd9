"""Where a function is defined; how its file is run again elsewhere; whether inputs are what a race needs."""

from __future__ import annotations

import inspect
import linecache
import os
import secrets
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType
from typing import Any

NO_GUARD = (
    "{file} calls the judge while it is run again: put that under `if __name__ == \"__main__\":`, as with "
    "multiprocessing."
)

_modules: dict[str, ModuleType] = {}  # by file: what was run again in this process
_running: list[str] = []


class SourceError(RuntimeError):
    """A file that cannot be run, or lacks a function; the message is one sentence."""


@dataclass(frozen=True)
class Source:
    """A function, as the file that defines it and its name there."""

    path: Path
    name: str

    def __str__(self) -> str:
        return f"{self.path.name}:{self.name}"

    def text(self) -> str:
        """The file's text. Raises SourceError."""
        try:
            return decode_source(self.path.read_bytes())
        except (OSError, SyntaxError, UnicodeError) as error:
            raise SourceError(f"{self.path} cannot be read: {error}.") from None


def source_of(function: Callable[..., object] | str, what: str) -> Source:
    """Where a function is defined, given itself or as "path/to/file.py:function"; ``what`` it is, for messages.

    Raises TypeError for a function that no other process could define anew, FileNotFoundError and ValueError for
    a text that names none.
    """
    if isinstance(function, str):
        path, _, name = function.rpartition(":")
        if not path or not name.isidentifier():
            raise ValueError(f"{what} is to be a text like 'path/to/file.py:function', not {function!r}.")
        if not Path(path).is_file():
            raise FileNotFoundError(f"there is no file {path!r}.")
        return Source(Path(path).resolve(), name)
    if not callable(function):
        kind = type(function).__name__
        raise TypeError(f"{what} is to be a function, or a text like 'path/to/file.py:function', not {kind}.")
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    file = str(getattr(module, "__file__", None))
    names = [name for name, value in vars(module).items() if value is function] if module else []
    if file.endswith(".py") and Path(file).is_file() and names:
        return Source(Path(file).resolve(), names[0])
    name = getattr(function, "__qualname__", type(function).__name__)
    if "<locals>" in name and "<lambda>" not in name:
        why = "it is defined inside another function: define it at the top level of a file"
    elif "<lambda>" in name:
        why = "it has no name: define it with `def` at the top level of a file"
    elif module and getattr(module, "__name__", "") == "__main__" and not Path(file).is_file():
        why = "it is defined at a prompt or in a notebook: put it into a file"
    else:
        why = "it is not defined at the top level of a Python file: write a function there that calls it"
    raise TypeError(f"{what} {name} cannot be run elsewhere, because {why}.")


def running_again() -> str | None:
    """The file that is being run again in this process just now, if any."""
    return _running[-1] if _running else None


def load(path: str, name: str, text: str | None = None) -> Any:
    """The function ``name`` of a file that is run again here, once; ``text`` is its contents, if given.

    Raises SourceError where the file raises, or has no such function.
    """
    file = os.path.basename(path)
    if path not in _modules:
        text = Source(Path(path), name).text() if text is None else text
        module = ModuleType(f"again_{len(_modules)}_{Path(file).stem}")
        module.__file__ = path
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        sys.modules[module.__name__] = module
        _running.append(file)
        try:
            exec(compile(text, path, "exec"), module.__dict__)
        except (Exception, SystemExit) as error:
            raise SourceError(_why(error, path)) from None
        finally:
            _running.pop()
        _modules[path] = module
    function = getattr(_modules[path], name, None)
    if not callable(function):
        raise SourceError(f"{file} defines no function {name!r}.")
    return function


def _why(error: BaseException, path: str) -> str:
    """What went wrong in a file, and in which of its lines."""
    file = os.path.basename(path)
    if isinstance(error, SourceError):
        return str(error)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    where = f" in line {lines[-1]}" if lines else ""
    return f"{file} raised {type(error).__name__}{where}: {' '.join(str(error).split()) or 'no message'}"


def with_device(inputs: Callable[..., object]) -> Callable[..., object]:
    """The same as a function of a generator and a device; one that takes a generator only need not know more."""
    try:
        inspect.signature(inputs).bind(None, None)
        return inputs
    except ValueError:  # it does not tell
        return inputs
    except TypeError:
        from ..judging.values import change_tensors

        return lambda generator, device: change_tensors(inputs(generator), lambda tensor: tensor.to(device))


def problem_of_inputs(make: Callable[[int], object], same: Callable[[int], object]) -> str | None:
    """Why inputs cannot be raced on, in a sentence; None where they can. Both functions make them from a seed."""
    from ..judging.values import difference

    seed, other = secrets.randbits(62), secrets.randbits(62)
    first = make(seed)
    if difference(first, same(seed)) is not None:
        return (
            "the inputs are others for an equal generator: all that is random in them must come from the generator."
        )
    if difference(first, make(other)) is None:
        return "the inputs are always the same: an answer could keep its results. Let the generator make them."
    return None
