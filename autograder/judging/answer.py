"""What ``check`` and ``race`` need of an answer: call it, time it against another, learn how it failed.

In a notebook an answer is a function of this process. In grading it runs in a process of its own, and the
test cells hold objects that keep to the same protocol (``autograder.sandbox.submissions.proxies``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ..measuring.duel import Verdict, duel_here
from ..measuring.selfcheck import check_here


@runtime_checkable
class Answer(Protocol):
    """An answer: called with inputs, it gives a result or raises.

    Where it ran in a process of its own, the ``__cause__`` of what it raises is a ``FailedElsewhere``.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def duel(
        self,
        against: Callable[..., object],
        on: Callable[..., object],
        *,
        threshold: float,
        device: str,
        tolerance: float | None,
        seconds: float,
    ) -> Verdict:
        """Whether it is ``threshold`` times as fast as ``against``. Raises DuelError where nobody can tell.

        ``seconds`` is what an honest estimate in a notebook may take; a verdict with a bound on its errors
        takes what it needs.
        """
        ...


class FailedElsewhere(Exception):
    """How a call failed in a process of its own.

    The message is what the student reads. ``by_torch``: torch raised NotImplementedError, not the student.
    """

    def __init__(self, message: str, by_torch: bool = False) -> None:
        super().__init__(message)
        self.by_torch = by_torch


@dataclass(frozen=True)
class AnswerHere:
    """A function of this process as an Answer."""

    function: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def duel(
        self,
        against: Callable[..., object],
        on: Callable[..., object],
        *,
        threshold: float,
        device: str,
        tolerance: float | None,
        seconds: float,
    ) -> Verdict:
        """As the protocol says. Raises TooNoisy where this machine cannot judge."""
        check_here()
        return duel_here(against, self.function, on, threshold=threshold, device=device, seconds=seconds)
