"""Counted costs of a piece of torch code: the same on every machine, busy or not, with a GPU or without."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .units import counted, size

COPIES = {"aten._to_copy", "aten.clone", "aten.copy_", "aten.lift_fresh_copy", "aten._foreach_copy_"}
# Operations whose result is a Python value or has a size that depends on data: on a GPU the host must wait.
WAITS = {
    "aten._local_scalar_dense",
    "aten.allclose",
    "aten.bincount",
    "aten.equal",
    "aten.is_nonzero",
    "aten.masked_select",
    "aten.nonzero",
    "aten._unique2",
    "aten.unique_consecutive",
    "aten.unique_dim",
}


@dataclass
class Costs:
    """What one call did, counted.

    ``operations`` counts dispatched operations by name, views left out; ``views`` counts those. ``bytes`` is
    the memory of all new tensors that operations handed back, ``peak_bytes`` the most of it alive at once
    (scratch memory inside an operation is not seen). ``used_bytes``: what an answer's processes were seen
    from outside to use at once, where ``memory_matters`` and the count does not explain it. ``copies`` counts
    operations that only copy, and ``transfers`` those that copy from one device to another. ``syncs`` counts
    points where the host would wait for a GPU. ``shares``: whether a result was seen to change with an input,
    where ``sharing_matters``. ``doubt``: why a count that was taken elsewhere is not to be believed;
    ``sharing_doubt``: why not what was said there about shared memory.
    """

    memory_matters: bool = False
    sharing_matters: bool = False
    shares: bool = False
    calls: int = 0  # of functions in other processes

    operations: Counter[str] = field(default_factory=Counter)
    views: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    peak_bytes: int = 0
    used_bytes: int = 0
    copies: int = 0
    transfers: int = 0
    syncs: int = 0
    doubt: Exception | None = None
    sharing_doubt: Exception | None = None

    def figure(self, name: str) -> int:
        """One cost as a number; for ``operations`` and ``views`` their total. Raises the ``doubt``."""
        if self.doubt:
            raise self.doubt
        value = getattr(self, name)
        if name in ("bytes", "peak_bytes"):
            value = max(value, self.used_bytes)
        return value.total() if isinstance(value, Counter) else value

    def add(self, other: Costs) -> None:
        """Take the costs of work done elsewhere into account."""
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)
        self.shares = self.shares or other.shares
        self.used_bytes = max(self.used_bytes, other.used_bytes)
        self.doubt = self.doubt or other.doubt
        self.sharing_doubt = self.sharing_doubt or other.sharing_doubt
        for name in ("operations", "views", "bytes", "copies", "transfers", "syncs"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def __str__(self) -> str:
        often = ", ".join(f"{name} {number}" for name, number in self.operations.most_common(5))
        return (
            f"{counted(self.operations.total(), 'operation')}" + (f" ({often})" if often else "") + "\n"
            f"{counted(self.views.total(), 'view')}\n"
            f"{size(self.bytes)} allocated, at most {size(self.peak_bytes)} at once\n"
            f"{counted(self.copies, 'copy', 'copies')}, {counted(self.syncs, 'sync')}, "
            f"{counted(self.transfers, 'transfer')} between devices"
        )

    __repr__ = __str__


def costs(function: Callable[..., object], *args: object, **kwargs: object) -> Costs:
    """Call ``function(*args, **kwargs)`` once and count what it asked torch to do.

    Built on ``TorchDispatchMode``: it sees every operation below autograd, on any device, ``meta`` included.
    Memory that a tensor shares with a NumPy array is not counted as allocated. Work outside torch (NumPy,
    Python lists) is not seen.
    """
    with counting(args, kwargs) as counted:
        function(*args, **kwargs)
    return counted


# What counts now, outermost first.
_counters: list[_Counter] = []


@contextmanager
def counting(*given: object) -> Iterator[Costs]:
    """Count what the block asks torch to do; memory of tensors in ``given`` is not new."""
    counter = _Counter(given)
    _counters.append(counter)
    try:
        with counter, _ToLists(counter.costs):
            yield counter.costs
    finally:
        _counters.pop()
        counter.seen.clear()  # what lives on is none of its business any more


def counted_now() -> Costs | None:
    """The innermost count being taken: work done in another process can be added to it."""
    return _counters[-1].costs if _counters else None


def count_in_threads() -> None:
    """From now on, count the operations of all threads that are started, too.

    Each of their operations passes through Python then, counted or not.
    """
    threading.setprofile(_watch_this_thread)


def _watch_this_thread(*_: object) -> None:
    """A thread calls it once, before anything else."""
    sys.setprofile(None)
    _InThread().__enter__()  # type: ignore[no-untyped-call]


class _ToLists(TorchFunctionMode):
    """Counts ``tolist`` of a CPU tensor as a sync: it reads memory without any operation below."""

    def __init__(self, costs: Costs) -> None:
        super().__init__()
        self._costs = costs

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self._costs.syncs += func is torch.Tensor.tolist and args[0].device.type == "cpu"
        return func(*args, **(kwargs or {}))


class _Mode(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Otherwise the first count loads torch's compiler, which takes a second.
        return False


class _Counter(_Mode):
    def __init__(self, given: Iterable[object]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.costs = Costs()
        self._alive = 0
        self.seen: dict[int, _Storage] = {}
        for leaf in tree_leaves(given):
            if isinstance(leaf, torch.Tensor):
                self._remember(leaf.untyped_storage())

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        kind = _kind(func)
        given = _direct((*args, *kwargs.values()))
        for tensor in given:
            # Tensors made outside the dispatcher (torch.tensor of a list) first show up in lift_fresh;
            # a storage that cannot be resized wraps somebody else's memory (from_numpy, frombuffer).
            storage = tensor.untyped_storage()
            fresh = kind.name == "aten.lift_fresh" and storage.resizable()
            self._remember(storage, storage.nbytes() if fresh else 0)
        result = func(*args, **kwargs)
        made = _direct(result if isinstance(result, (tuple, list)) else (result,))
        for tensor in made:
            storage = tensor.untyped_storage()
            self._remember(storage, storage.nbytes())
        if kind.counts:
            (self.costs.views if kind.views else self.costs.operations)[kind.name] += 1
        if kind.copies:
            self.costs.copies += 1
            crosses = len({tensor.device for tensor in (*given, *made)}) > 1
            self.costs.transfers += crosses
            # ``copy_`` takes it as its third argument.
            third = kind.name == "aten.copy_" and len(args) > 2 and args[2]
            self.costs.syncs += crosses and not kwargs.get("non_blocking", third)
        elif kind.may_wait:
            self.costs.syncs += _waits(kind.name, args, kwargs)
        return result

    def _remember(self, storage: torch.UntypedStorage, size: int = 0) -> None:
        """A storage that may be new, with so many bytes of new memory."""
        key, now = storage._cdata, storage.nbytes()
        if seen := self.seen.get(key):
            size = max(0, now - seen.before)  # an operation may make it larger: `out=`, `resize_`
            seen.size += size
        else:
            self.seen[key] = seen = _Storage(storage, self._freed)
            seen.key, seen.size = key, size
        seen.before = now
        if size:
            self.costs.bytes += size
            self._alive += size
            self.costs.peak_bytes = max(self.costs.peak_bytes, self._alive)

    def _freed(self, seen: _Storage) -> None:
        self.seen.pop(seen.key, None)
        self._alive -= seen.size


class _Storage(weakref.ref[torch.UntypedStorage]):
    """A storage that is alive, which ``size`` bytes were allocated for; it had ``before`` last time."""

    __slots__ = ("before", "key", "size")
    before: int
    key: int
    size: int


class _Kind(NamedTuple):
    """What is always so for an operation."""

    name: str
    counts: bool
    views: bool
    copies: bool
    may_wait: bool


@cache
def _kind(func: Any) -> _Kind:
    name = str(func.overloadpacket)
    counts = not name.startswith("profiler.")  # marks that optimisers leave for the profiler
    may_wait = name in WAITS or name.startswith("aten.index") or name == "aten.repeat_interleave"
    return _Kind(name, counts, func.is_view, name in COPIES, may_wait)


class _InThread(_Mode):
    """Hands the operations of a thread to whatever counts at that time."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if _counters:
            return _counters[-1].__torch_dispatch__(func, types, args, kwargs)
        return func(*args, **(kwargs or {}))


def _waits(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a GPU's host waits in an operation that is no copy."""
    if name == "aten.repeat_interleave":  # of numbers that differ: how many come out in all?
        return kwargs.get("output_size") is None
    if not name.startswith("aten.index"):
        return name in WAITS
    has_mask = any(tensor.dtype in (torch.bool, torch.uint8) for tensor in _direct(args[1:2]))
    return has_mask and not _fills(name, args)


def _direct(values: Iterable[object]) -> list[torch.Tensor]:
    """The tensors that an operation takes or gives. They lie in lists at most; this is called often."""
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [one for one in value if isinstance(one, torch.Tensor)]
    return found


def _fills(name: str, args: tuple[Any, ...]) -> bool:
    """Whether one number is written where a mask is true: torch does not look for the places, but fills.

    Source: canDispatchToMaskedFill in ATen/native/TensorAdvancedIndexing.cpp.
    """
    if not name.startswith("aten.index_put") or len(_direct(args[1:2])) != 1:
        return False
    return bool(args[2].numel() == 1 and args[2].device.type == "cpu")
