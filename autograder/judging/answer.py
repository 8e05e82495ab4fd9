"""What ``check`` and ``race`` need of an answer in another process: call it, time it, learn how it failed."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from ..measuring.clocks import Function
from ..measuring.duel import Verdict


@runtime_checkable
class Answer(Protocol):
    """What stands for an answer in grading: called with inputs, it gives a result or raises.

    The ``__cause__`` of what it raises is a ``FailedElsewhere``.
    """

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
