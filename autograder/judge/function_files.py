"""Where a function is defined; how its file is run again elsewhere; whether inputs are what a race needs."""

import inspect
import linecache
import secrets
import stat
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ..files import python_text
from ..show import visible

MOST_BYTES = 1_000_000  # of a file: to parse more can take gigabytes

running: list[str] = []  # files that are being run again in this process
_modules: dict[str, ModuleType] = {}  # by file: what was run again in this process


class SourceError(RuntimeError):
    """A file that cannot be run or lacks a function, or what it does cannot be raced; one sentence."""


@dataclass(frozen=True)
class Source:
    """A function, as the file that defines it and its name there."""

    path: Path
    name: str

    def __str__(self) -> str:
        return " ".join(f"{visible(self.path.name)}:{self.name}".split())

    @property
    def content(self) -> bytes:
        """What is in the file. Raises SourceError."""
        try:
            about = self.path.stat()
            if not stat.S_ISREG(about.st_mode):
                raise OSError("it is no plain file")
            if about.st_size > MOST_BYTES:
                raise OSError(f"it has more than {MOST_BYTES / 1e6:g} MB")
            return self.path.read_bytes()
        except OSError as error:
            raise SourceError(f"{self.path.name} cannot be read: {error.strerror or error}.") from None

    @property
    def text(self) -> str:
        """The file's text. Raises SourceError."""
        try:
            return python_text(self.content)
        except (SyntaxError, UnicodeError, LookupError) as error:
            raise SourceError(f"{self.path.name} cannot be read: {error}.") from None


@dataclass(frozen=True)
class Task:
    """What is to be judged, within so many ``seconds`` a step; ``tell`` hears what is done now."""

    answer: Source
    given: Source
    inputs: Source
    tolerance: float | None
    seconds: float
    tell: Callable[[str], None]


def source_of(function: Callable[..., object] | str, what: str) -> Source:
    """Where a function is defined, or what "path/to/file.py:function" names; ``what`` it is, for messages.

    Raises TypeError where no other process could define it anew, FileNotFoundError, and ValueError.
    """
    if isinstance(function, str):
        path, _, name = function.rpartition(":")
        if not path or not name.isidentifier():
            raise ValueError(f"{what} must be a text like 'path/to/file.py:function', not {function!r}.")
        if not Path(path).is_file():
            raise FileNotFoundError(f"there is no file {path!r}.")
        return Source(Path(path).resolve(), name)
    if not callable(function):
        raise TypeError(f"{what} must be a function, not {type(function).__name__}.")
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    file = Path(getattr(module, "__file__", None) or "")
    names = [name for name, value in vars(module).items() if value is function] if module else []
    if names and file.is_file() and not inspect.isbuiltin(function):
        return Source(file.resolve(), names[0])
    name = getattr(function, "__qualname__", type(function).__name__)
    if "<lambda>" in name:
        why = "it has no name"
    elif "<locals>" in name:
        why = "it is defined inside another function"
    elif getattr(module, "__name__", "") == "__main__":
        why = "it is defined at a prompt or in a notebook"
    else:
        why = "it is no function of a Python file"
    raise TypeError(f"{what}, {name}, cannot be run elsewhere: {why}. Define it at the top level of a file.")


def load(path: str, name: str, text: str | None = None) -> Any:
    """The function ``name`` of a file that is run again here, once; ``text`` is what is in it, if given.

    Raises SourceError where the file raises, or has no such function.
    """
    source = Source(Path(path), name)
    if path not in _modules:
        text = source.text if text is None else text
        module = ModuleType(f"again_{len(_modules)}_{source.path.stem}")
        module.__file__ = path
        sys.modules[module.__name__] = module
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        running.append(source.path.name)
        try:
            exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
        except SourceError:
            raise
        except (Exception, SystemExit) as error:
            frames = traceback.extract_tb(error.__traceback__)
            where = "".join(f" in line {frame.lineno}" for frame in frames if frame.filename == path)
            what = f"{type(error).__name__}{where}: {error}"
            raise SourceError(f"{source.path.name} raised {what}") from None
        finally:
            running.pop()
        _modules[path] = module
    if not callable(function := getattr(_modules[path], name, None)):
        raise SourceError(f"{source.path.name} defines no function {name!r}.")
    return function


def with_device(inputs: Callable[..., object]) -> Callable[..., object]:
    """The same as a function of a generator and a device, where it is one of a generator only."""
    try:
        inspect.signature(inputs).bind(None, None)
    except ValueError:  # it does not tell
        return inputs
    except TypeError:
        from ..judging.values import change_tensors

        return lambda generator, device: change_tensors(inputs(generator), lambda tensor: tensor.to(device))
    return inputs


def check_inputs(make: Callable[[int], object], same: Callable[[int], object]) -> None:
    """Raise SourceError for inputs that cannot be raced on. Both functions make them from a seed."""
    from ..judging.values import difference

    seed, other = secrets.randbits(62), secrets.randbits(62)
    first = make(seed)
    if difference(first, same(seed)) is not None:
        raise SourceError("inputs gives other values for an equal generator: let all of them come from it.")
    if difference(first, make(other)) is None:
        raise SourceError("inputs gives the same values each time, so an answer could keep its results.")
