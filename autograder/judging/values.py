"""Values as they go into and come out of an answer: variants of inputs, and where two results differ."""

import inspect
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from numpy.lib import array_utils
from torch.utils._pytree import tree_leaves, tree_map_only

# Relative tolerance by dtype: room for another order of summation, none for a wrong result.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}

MOST_TOLD = 200  # characters of a value, in messages


def change_tensors(value: object, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same nested value with ``change`` applied to every tensor in it."""
    return tree_map_only(torch.Tensor, change, value)


def tensors(value: object) -> list[torch.Tensor]:
    """All tensors in a nested value."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """Equal contents, but every other column of a wider tensor: not contiguous, and no flat view exists."""
    if tensor.ndim == 0 or tensor.numel() < 2:
        return tensor
    columns = tensor.shape[-1]
    wider = tensor.new_empty((*tensor.shape[:-1], 2 * columns + 1))[..., : 2 * columns : 2]
    return wider.copy_(tensor)


def channels_last(tensor: torch.Tensor) -> torch.Tensor:
    """Equal contents in channels_last order, where the tensor has four dimensions."""
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.ndim == 4 else tensor


def differentiable(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, which a gradient is asked for, where they are floating point."""
    return tensor.detach().requires_grad_() if tensor.is_floating_point() else tensor


def precise(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in float64, where they are floating point."""
    return tensor.double() if tensor.is_floating_point() else tensor


def argument_names(function: Callable[..., object], number: int) -> list[str]:
    """The names of the first parameters of a function, for messages."""
    found: list[str] = []
    with suppress(TypeError, ValueError):
        found = list(inspect.signature(function).parameters)
    return found[:number] if len(found) >= number else [f"input[{place}]" for place in range(number)]


def change_of_inputs(
    mine: tuple[Any, ...],
    theirs: tuple[Any, ...],
    before: Callable[[], tuple[Any, ...]],
    given: Callable[..., object],
    tolerance: float | None,
) -> str | None:
    """How inputs differ after a call from those of the ``given`` version after its call, or None.

    They may differ in structure, in values, in whether they require a gradient, and in the one they hold.
    An argument that the given version left as it was ``before`` must be so to the bit.
    """
    were = theirs if identical(mine, theirs) else before()
    for name, own, other, old in zip(argument_names(given, len(mine)), mine, theirs, were, strict=True):
        left_alone = difference(other, old, None, 0) is None
        if found := difference(own, other, None, 0 if left_alone else tolerance, name):
            return found
        for one, like in zip(tensors(own), tensors(other), strict=True):
            if one.requires_grad != like.requires_grad:
                return f"a tensor in {name} requires {'a' if one.requires_grad else 'no'} gradient now."
            if (one.grad is None) != (like.grad is None):
                return f"a tensor in {name} {'lost its' if one.grad is None else 'holds a'} .grad now."
            if one.grad is not None and (
                found := difference(one.grad, like.grad, None, tolerance, "its .grad")
            ):
                return f"in {name}, {found}"
    return None


def shares_memory(value: object, inputs: object) -> bool:
    """Whether any tensor of ``value`` lives in memory of any tensor or NumPy array of ``inputs``."""
    own = [(start, end) for start, end in map(_extent, tensors(value)) if end > start]
    given = [_extent(item) for item in tree_leaves(inputs) if isinstance(item, (torch.Tensor, np.ndarray))]
    return any(a < d and c < b for a, b in own for c, d in given)


def _extent(item: torch.Tensor | np.ndarray) -> tuple[int, int]:
    if isinstance(item, np.ndarray):
        return array_utils.byte_bounds(item) if item.size else (0, 0)
    storage = item.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def identical(got: object, expected: object) -> bool:
    """Whether a value is certainly the expected one, to the last bit: then nobody need look closer."""
    if type(got) is not type(expected):
        return False
    if isinstance(got, (tuple, list)) and isinstance(expected, (tuple, list)):
        return len(got) == len(expected) and all(map(identical, got, expected))
    if type(got) is np.ndarray and isinstance(expected, np.ndarray):
        return got.dtype == expected.dtype and got.dtype.kind in "biuf" and np.array_equal(got, expected)
    if type(got) is torch.Tensor and isinstance(expected, torch.Tensor):
        kinds = {(one.dtype, one.layout, one.device.type) for one in (got, expected)}
        return kinds == {(got.dtype, torch.strided, "cpu")} and torch.equal(got, expected)
    return type(got) in (int, float, str, bool, type(None)) and got == expected


def difference(
    got: object, expected: object, exact: Any = None, tolerance: float | None = None, where: str = "result"
) -> str | None:
    """One or two lines on the first difference between two nested values, or None where there is none.

    ``exact`` is the expected value computed in higher precision, if there is one: then types, shapes and
    dtypes are taken from ``expected`` and the numbers from ``exact``. Numbers differ where they are further
    apart than ``tolerance`` times (their size + the root mean square of the tensor).
    """
    if exact is None:
        if identical(got, expected):
            return None
        exact = expected
    if isinstance(expected, torch.Tensor):
        return _tensor_difference(got, expected, exact, tolerance, where)
    if isinstance(expected, np.ndarray):
        if not isinstance(got, np.ndarray):
            return _wrong_type(got, "a NumPy array", where)
        pair = [torch.tensor(one.astype(one.dtype.newbyteorder("="))) for one in (got, expected)]
        return _tensor_difference(pair[0], pair[1], pair[1], tolerance, where)
    if isinstance(expected, dict):
        if not isinstance(got, dict):
            return _wrong_type(got, "a dict", where)
        if got.keys() != expected.keys():
            mine, theirs = (_told(sorted(map(str, one))) for one in (got, expected))
            return f"{where} has the keys {mine}, expected {theirs}."
        pairs = [(f"{where}[{key!r}]", got[key], expected[key], exact[key]) for key in expected]
    elif isinstance(expected, (tuple, list)):
        if not isinstance(got, (tuple, list)):
            return _wrong_type(got, f"a {type(expected).__name__} of {len(expected)}", where)
        if len(got) != len(expected):
            return f"{where} has {len(got)} items, expected {len(expected)}."
        pairs = [(f"{where}[{i}]", *items) for i, items in enumerate(zip(got, expected, exact, strict=True))]
    else:
        return _number_difference(got, expected, exact, tolerance, where)
    found = (difference(g, e, x, tolerance, name) for name, g, e, x in pairs)
    return next((one for one in found if one), None)


def _tensor_difference(
    got: object, expected: torch.Tensor, exact: torch.Tensor, tolerance: float | None, where: str
) -> str | None:
    if not isinstance(got, torch.Tensor):
        asked = f"a tensor of shape {tuple(expected.shape)} and dtype {expected.dtype}"
        return _wrong_type(got, asked, where)
    for name in ("shape", "dtype", "device"):
        mine, theirs = getattr(got, name), getattr(expected, name)
        if mine != theirs:
            mine, theirs = (tuple(v) if name == "shape" else v for v in (mine, theirs))
            return f"{where} has the {name} {mine}, expected {theirs}."
    got, exact = got.detach(), exact.detach()
    if got.device.type == "mps":  # it has no float64
        got, exact = got.cpu(), exact.cpu()
    if got.numel() == 0 or got.device.type == "meta":
        return None
    if got.is_floating_point() or got.is_complex():
        if tolerance is None:
            tolerance = TOLERANCE.get(got.dtype, 1e-4)
        if _surely_near(got, exact, tolerance):
            return None
        wide = torch.complex128 if got.is_complex() else torch.float64
        got, exact, expected = got.to(wide), exact.to(wide), expected.detach().to(got.device, wide)
        scale = _root_mean_square(exact[torch.isfinite(exact)])
        near = torch.isclose(got, exact, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
        # In the same precision, the given version itself may be off, where what it adds nearly cancels out.
        same = torch.isclose(got, expected, rtol=0.0, atol=0.0, equal_nan=True)
        wrong = ~(near | same)
    else:
        wrong = got != exact
    if not wrong.any():
        return None
    index, number = tuple(wrong.nonzero()[0].tolist()), int(wrong.sum())
    mine, theirs = (_figure(value[index]) for value in (got, exact))
    if mine == theirs:
        mine, theirs = (repr(value[index].item()) for value in (got, exact))
    return (
        f"{where}{list(index) if index else ''} is {mine}, expected {theirs}.\n"
        f"{number:,} of {wrong.numel():,} values differ ({number / wrong.numel():.0%})."
    )


def _surely_near(got: torch.Tensor, exact: torch.Tensor, tolerance: float) -> bool:
    """Whether no two numbers are further apart than ``tolerance`` times the root mean square.

    Then they do not differ; and this takes a tenth of the time of looking at each. False where any number is
    not finite, or too large for its square.
    """
    if not {got.dtype, exact.dtype} <= {torch.float32, torch.float64}:
        return False
    norm = torch.linalg.vector_norm
    apart = norm(got - exact, ord=math.inf).item()
    scale = norm(exact).item() / math.sqrt(exact.numel())
    return math.isfinite(scale) and bool(apart <= 0.9 * tolerance * scale)


def _root_mean_square(finite: torch.Tensor) -> float:
    largest = finite.abs().max().item() if finite.numel() else 0.0
    return largest * (finite / largest).abs().square().mean().sqrt().item() if largest else 0.0


def _number_difference(
    got: object, expected: object, exact: Any, tolerance: float | None, where: str
) -> str | None:
    if isinstance(expected, bool) or not isinstance(expected, (int, float)):
        same = type(got) is type(expected) and got == expected
    elif isinstance(got, bool) or not isinstance(got, (int, float)):
        return _wrong_type(got, f"the number {expected}", where)
    else:
        tolerance = 1e-6 if tolerance is None else tolerance
        same = math.isclose(got, exact, rel_tol=tolerance, abs_tol=min(tolerance, 1e-12))
        same = same or (math.isnan(got) and math.isnan(exact))
    return None if same else f"{where} is {_told(got)}, expected {_told(expected)}."


def _wrong_type(got: object, expected: str, where: str) -> str:
    name = type(got).__name__
    hint = " Does your function end with a return?" if got is None else ""
    return f"{where} is {'None' if got is None else f'of type {name}'}, expected {expected}.{hint}"


def _told(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST_TOLD else f"{text[:MOST_TOLD]} …"


def _figure(value: torch.Tensor) -> str:
    number = value.item()
    return f"{number:.6g}" if isinstance(number, float) else str(number)
