"""What a call did to its inputs besides writing values: other items, other shapes, gradients.

Values are seen in the shared memory. The rest is told by the process that ran the call (``Watched``) and
taken over into the judge's own inputs (``take_over``), where tests compare it with the given version's.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ...judging.calls import AnswerError
from ...judging.values import change_tensors, tensors
from .encode import Results
from .messages import ChangedInputs


class Watched:
    """Inputs as they were before a call."""

    def __init__(self, given: list[Any]) -> None:
        self._given = given
        self._before = _fingerprint(given)
        self._alive = tensors(given)  # so that no other tensor can come to have their id

    def changed(self, results: Results) -> ChangedInputs | None:
        """What became of them, or None; its values go with those of the ``results``."""
        if _fingerprint(self._given) == self._before:
            return None
        found = tensors(self._given)
        return ChangedInputs(
            [results.node(value) for value in change_tensors(self._given, torch.Tensor.detach)],
            [tensor.requires_grad for tensor in found],
            [results.node(None if tensor.grad is None else tensor.grad.detach()) for tensor in found],
        )


def take_over(given: Sequence[Any], changed: Sequence[Any], marks: Iterator[tuple[bool, Any]]) -> None:
    """Bring the judge's inputs into the state that another process told.

    ``marks`` are, for each tensor in ``changed``, whether it requires a gradient, and the one that it holds.
    Raises AnswerError for what cannot be.
    """
    try:
        for old, new in zip(given, changed, strict=True):
            _renewed(old, new, marks)
    except (RuntimeError, TypeError, ValueError) as error:
        raise AnswerError("failed", f"the call changed its input in a way that cannot be: {error}") from error


def _renewed(old: Any, new: Any, marks: Iterator[tuple[bool, Any]]) -> Any:
    """What stands in the place of ``old`` now; lists and dicts are changed where they are."""
    if isinstance(new, torch.Tensor):
        requires, gradient = next(marks)
        if isinstance(old, torch.Tensor):
            if _layout(old) != _layout(new):
                old.data = new
            new = old
        if new.requires_grad != requires:
            new.requires_grad_(requires)
        new.grad = gradient
        return new
    if isinstance(new, list):
        kept = old if isinstance(old, list) else []
        kept[:] = [_renewed(kept[i] if i < len(kept) else None, item, marks) for i, item in enumerate(new)]
        return kept
    if isinstance(new, tuple):
        known = old if isinstance(old, tuple) else ()
        items = [_renewed(known[i] if i < len(known) else None, item, marks) for i, item in enumerate(new)]
        return old if len(known) == len(items) else tuple(items)
    if isinstance(new, dict):
        held = old if isinstance(old, dict) else {}
        entries = {key: _renewed(held.get(key), item, marks) for key, item in new.items()}
        held.clear()
        held.update(entries)
        return held
    return new if old is None or isinstance(new, (bool, int, float, str, type(None))) else old


def _layout(tensor: torch.Tensor) -> tuple[object, ...]:
    where = tensor.data_ptr() if tensor.device.type == "cpu" else 0
    return where, tensor.shape, tensor.stride(), tensor.dtype


def _fingerprint(value: Any) -> object:
    """Equal before and after a call that wrote values at most."""
    if isinstance(value, torch.Tensor):
        grad = value.grad if value.is_leaf else None
        return id(value), *_layout(value), value.requires_grad, grad is not None and (id(grad), grad._version)
    if isinstance(value, dict):
        return dict, [(key, _fingerprint(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [_fingerprint(item) for item in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else id(value)
