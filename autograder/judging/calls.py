"""Calling an answer: what it raises becomes an outcome word, what it writes to stderr becomes a remark.

In grading it is in another process; ``Answer`` is what stands for it then.
"""

import io
import linecache
import os
import signal
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import torch

from ..measuring.clocks import Function
from ..measuring.countdown import CoreTime, Countdown
from ..measuring.duel import Verdict
from ..measuring.gpus import is_full

_TORCH = os.path.dirname(torch.__file__) + os.sep


@dataclass(frozen=True)
class CallLimit:
    """How long a call may take, and the time on cores of the processes that calls run in."""

    seconds: float = 20.0
    core_time: CoreTime = field(default_factory=CoreTime)


call_limit = ContextVar("call_limit", default=CallLimit())  # noqa: B039 (it is frozen)


@runtime_checkable
class Answer(Protocol):
    """Called with inputs, it gives a result or raises; the ``__cause__`` is then a ``FailedElsewhere``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def duel(self, against: Function, on: Function, *, threshold: float, tolerance: float | None) -> Verdict:
        """Whether it is ``threshold`` times as fast as ``against``. Raises DuelError where it cannot tell."""
        ...


class FailedElsewhere(Exception):
    """How a call failed in a process of its own.

    The message is what the student reads. ``by_torch``: torch raised NotImplementedError, not the student.
    """

    def __init__(self, message: str, by_torch: bool = False) -> None:
        super().__init__(message)
        self.by_torch = by_torch


class AnswerError(Exception):
    """No points; ``word`` is the outcome, the message is for the student.

    ``right`` says that the results themselves were right, so that a race may still time the answer.
    """

    def __init__(self, word: str, message: str, *, right: bool = False) -> None:
        super().__init__(message)
        self.word, self.right = word, right


# Answer -> a check's cases and demands -> the case in which it was wrong when last tested, for race.
_checked: WeakKeyDictionary[Function, dict[tuple[str, ...], str]] = WeakKeyDictionary()


def remember(function: Function, check: tuple[str, ...], wrong: str = "") -> None:
    """Keep in which case of a check ``function`` was wrong, if any; the same check run again replaces it."""
    with suppress(TypeError):  # an object with __slots__ or without a hash; whoever races tests it once more
        _checked.setdefault(function, {})[check] = wrong


def found_wrong(function: Function) -> str:
    """A case in which a check last found ``function`` wrong in this session; "" where none did."""
    with suppress(TypeError):
        return next(filter(None, _checked.get(function, {}).values()), "")
    return ""


def call(function: Function, arguments: tuple[object, ...], said: list[str]) -> object:
    """``function(*arguments)``; warnings and text on stderr go to ``said``.

    Raises AnswerError: "not attempted" for NotImplementedError, "error" for anything else, and for a call
    that takes longer than the ``call_limit``. What says that the GPU stopped is raised as it is.
    """
    stream = io.StringIO()
    try:
        with warnings.catch_warnings(record=True) as caught, redirect_stderr(stream), _time_limit():
            warnings.simplefilter("default")
            return function(*arguments)
    except _TookTooLong as error:
        limit = f"{call_limit.get().seconds:g} s"
        raise AnswerError("error", f"did not return within {limit}. Is there an endless loop?") from error
    except Exception as error:
        if isinstance(error, NotImplementedError) and not raised_by_torch(error):
            raise AnswerError("not attempted", "there is no solution here yet.") from error
        if stopped_gpu(error):
            raise
        raise AnswerError("error", describe_error(error)) from error
    finally:
        said += [f"{warning.category.__name__}: {warning.message}" for warning in caught]
        said += stream.getvalue().strip().splitlines()[:5]


class _TookTooLong(BaseException):
    """Not an Exception, so that an answer's own ``except Exception`` does not swallow it."""


@contextmanager
def _time_limit() -> Iterator[None]:
    """Raise _TookTooLong after the ``call_limit``, in the main thread of a system with timers (not Windows).

    What the call waits for a core of a busy machine is not its time.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    limit = call_limit.get()
    countdown = Countdown(limit.seconds, limit.core_time)

    def stop(number: int, frame: object) -> None:
        if left := countdown.left():
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.01))  # 0 would switch it off
        else:
            raise _TookTooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit.seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def refuse_nonsense(function: object, other: object, inputs: object, points: float) -> None:
    """Raise a TypeError or ValueError with one clear sentence where a test cell is written wrongly."""
    for name, value in (("the answer", function), ("the given version", other), ("on", inputs)):
        if not callable(value):
            raise TypeError(f"{name} must be a function to call, not {type(value).__name__}.")
    if not points > 0:
        raise ValueError(f"points must be above 0, not {points!r}.")


def raised_by_torch(error: NotImplementedError) -> bool:
    """torch raises NotImplementedError too, for an operation that has no kernel for a dtype or device."""
    if isinstance(error.__cause__, FailedElsewhere):
        return error.__cause__.by_torch
    innermost = traceback.extract_tb(error.__traceback__)[-1].filename
    return (
        innermost.startswith(_TORCH) or "not implemented for" in str(error) or "Could not run" in str(error)
    )


def stopped_gpu(error: Exception) -> str:
    """What to tell where an error says that the GPU will do nothing more, or has no room; "" for all others.

    Making inputs there raises again, whoever does it. torch before 2.8 has no class for it.
    """
    if isinstance(error.__cause__, FailedElsewhere):
        return ""
    if is_full(error):
        return "the GPU's memory is full. To go on without it, run a cell with %env AUTOGRADER_DEVICES=cpu"
    if not (isinstance(error, RuntimeError) and str(error).startswith("CUDA error")):
        return ""
    return "the GPU has stopped, as it does for an index out of range. Restart the kernel to go on."


def describe_error(error: BaseException) -> str:
    """The error, and the line of the answer that raised it."""
    if isinstance(error.__cause__, FailedElsewhere):
        return str(error.__cause__)
    message = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {message[0] if message else 'no message'}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if "ipykernel_" in frame.filename or frame.filename.startswith("<ipython-input"):
            line = linecache.getline(frame.filename, frame.lineno or 0).strip() or frame.line
            return f"{text}\nraised in line {frame.lineno} of the cell: {line}"
    return text
