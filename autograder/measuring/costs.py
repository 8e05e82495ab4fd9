"""Counted costs of a piece of torch code: the same on every machine, busy or not, with a GPU or without."""

import mmap
import os
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle
from typing import Any

import torch
from torch._C import DispatchKey, DispatchKeySet
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

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
COMPOSITE = DispatchKey.CompositeImplicitAutograd
KERNELS = ("CPU", "BackendSelect", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
INDICES = (torch.int32, torch.int64)
# What hands out the values of a CPU tensor without any operation below.
READS = {torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__, torch.Tensor.__dlpack__}


@dataclass
class Costs:
    """What one call did, counted.

    ``operations`` counts dispatched operations by name, views left out; ``views`` counts those. ``bytes`` is
    the memory of all new tensors that operations handed back, ``peak_bytes`` the most of it alive at once
    (scratch memory inside an operation is not seen). ``used_bytes``: what an answer's processes were seen
    from outside to use at once, where ``memory_matters`` and the count does not explain it. ``copies`` counts
    operations that only copy: by their name, or (where ``copies_matter``) because all that they made was a
    tensor once more, as ``x * 1`` does, though not in place. ``transfers`` counts copies from one device to
    another, ``syncs`` points where the host would wait for a GPU. ``shares``: whether a result was seen to
    change with an input, where ``sharing_matters``. ``doubt``: why a count that was taken elsewhere is not to
    be believed.
    """

    copies_matter: bool = True
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

    def figure(self, name: str) -> int:
        """One cost as a number; for ``operations`` and ``views`` their total. Raises the ``doubt``."""
        if self.doubt:
            raise self.doubt
        value = getattr(self, name)
        if name in ("bytes", "peak_bytes"):
            value = max(value, self.used_bytes)
        return value.total() if isinstance(value, Counter) else value

    def add(self, other: "Costs") -> None:
        """Take the costs of work done elsewhere into account."""
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)
        self.shares = self.shares or other.shares
        self.used_bytes = max(self.used_bytes, other.used_bytes)
        self.doubt = self.doubt or other.doubt
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
    Python lists) is not seen, but a sync is counted where it is handed values. Of processes, forks that begin
    in the call are counted, without their memory.
    """
    with counting(args, kwargs) as counted:
        function(*args, **kwargs)
    return counted


# What counts now, outermost first.
_counters: "list[_Counter]" = []


@contextmanager
def counting(*given: object) -> Iterator[Costs]:
    """Count what the block asks torch to do; memory of tensors in ``given`` is not new."""
    counter = _Counter(given)
    _counters.append(counter)
    try:
        with counter, _Reads(counter):
            yield counter.costs
    finally:
        _counters.pop()
        operations, copies, syncs = counter.shared
        if operations:
            counter.costs.operations["in forks"] = operations
        counter.costs.copies += copies
        counter.costs.syncs += syncs
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
    if _counters:
        _Reads(_counters[-1]).__enter__()  # type: ignore[no-untyped-call]


class _Reads(TorchFunctionMode):
    """Counts what reads the memory of a CPU tensor as a sync."""

    def __init__(self, counter: "_Counter") -> None:
        super().__init__()
        self._counter = counter

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (func in READS and args[0].device.type == "cpu") or func is torch.Tensor.__repr__:
            self._counter.shared[2] += 1
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
        # Operations in forks; copies and syncs also here. Forks have this memory in common, and nothing else.
        self.shared = memoryview(mmap.mmap(-1, 3 * 8)).cast("q")
        self._process = os.getpid()
        self._alive = 0
        self.seen: dict[int, _Storage] = {}
        for leaf in tree_leaves(given):
            if isinstance(leaf, torch.Tensor):
                self._remember(leaf.untyped_storage())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        kind = _Kind(func)
        given = _direct((*args, *kwargs.values()))
        if kind.on_tensors and not given:  # numbers that torch's tracer keeps as tensors
            places = zip(args, func._schema.arguments, strict=False)
            args = tuple(torch.tensor(one) if str(to.type) == "Tensor" else one for one, to in places)
        by_themselves = any(one.__module__.partition(".")[0] != "torch" for one in types)
        is_pythons = func._defined_in_python or not kind.kernels.isdisjoint(torch.library._impls)
        if is_pythons and not by_themselves:
            key = torch._C._dispatch_key_for_device(given[0].device.type if given else "cpu")
            with self, _Reads(self):
                return func.redispatch(DispatchKeySet(getattr(DispatchKey, key)), *args, **kwargs)
        if kind.is_composite and not by_themselves:
            with self:
                return func._op_dk(COMPOSITE, *args, **kwargs)
        if kind.counts:
            counts = self.costs.views if kind.views else self.costs.operations
            # By what nobody can put something else in the place of.
            dict.__setitem__(counts, kind.name, dict.get(counts, kind.name, 0) + 1)
            self.shared[0] += not kind.views and os.getpid() != self._process
        if by_themselves:  # tensors of a kind that does the work, which is counted there
            return NotImplemented
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
        if kind.copies:
            self.shared[1] += 1
            crosses = len({tensor.device for tensor in (*given, *made)}) > 1
            self.costs.transfers += crosses
            # ``copy_`` takes it as its third argument.
            third = kind.name == "aten.copy_" and len(args) > 2 and args[2]
            self.shared[2] += crosses and not kwargs.get("non_blocking", third)
        elif self.costs.copies_matter and not kind.views:
            self.shared[1] += _gives_back(func, args, kwargs, given, made)
        if kind.may_wait:
            self.shared[2] += _waits(kind.name, args, kwargs)
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

    def _freed(self, seen: "_Storage") -> None:
        self.seen.pop(seen.key, None)
        self._alive -= seen.size


class _Storage(weakref.ref[torch.UntypedStorage]):
    """A storage that is alive, which ``size`` bytes were allocated for; it had ``before`` last time."""

    __slots__ = ("before", "key", "size")
    before: int
    key: int
    size: int


@cache
class _Kind:
    """What is always so for an operation."""

    def __init__(self, func: Any) -> None:
        self.name = name = str(func.overloadpacket)
        # Marks that optimisers leave for the profiler, and what comes here under ``inference_mode`` only.
        self.counts = not name.startswith("profiler.") and name != "aten.detach_"
        self.views, self.copies = func.is_view, name in COPIES
        self.may_wait = name in WAITS or name.startswith("aten.index") or name == "aten.repeat_interleave"
        self.on_tensors = [str(one.type) for one in func._schema.arguments[:1]] == ["Tensor"]
        # Made of others; autograd splits it before it comes here, ``inference_mode`` does not.
        named = not name.startswith("prim.")  # torch crashes there
        self.is_composite = named and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), COMPOSITE)
        # By these names torch remembers what somebody put where it is looked for, once it was counted.
        self.kernels = {f"{func.name().replace('::', '/')}/{key}" for key in KERNELS}


class _InThread(_Mode):
    """Hands the operations of a thread to whatever counts at that time."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if _counters:
            return _counters[-1].__torch_dispatch__(func, types, args, kwargs)
        return func(*args, **(kwargs or {}))


def _waits(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a GPU's host waits in an operation that is no copy.

    Not where one number is written where a mask is true: torch does not look for the places, but fills.
    Source: canDispatchToMaskedFill in ATen/native/TensorAdvancedIndexing.cpp.
    """
    if name == "aten.repeat_interleave":  # of numbers that differ: how many come out in all?
        return kwargs.get("output_size") is None
    if not name.startswith("aten.index"):
        return name in WAITS
    indices = _direct(args[1:2])
    has_mask = any(tensor.dtype in (torch.bool, torch.uint8) for tensor in indices)
    one_mask = name.startswith("aten.index_put") and len(indices) == 1
    return has_mask and not (one_mask and args[2].numel() == 1 and args[2].device.type == "cpu")


def _direct(values: Iterable[object]) -> list[torch.Tensor]:
    """The tensors that an operation takes or gives. They lie in lists at most; this is called often."""
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [one for one in value if isinstance(one, torch.Tensor)]
    return found


def _gives_back(
    func: Any, args: Any, kwargs: Any, given: list[torch.Tensor], made: list[torch.Tensor]
) -> bool:
    """Whether an operation made a tensor that it was given once more, and not by chance.

    ``relu`` gives positive numbers back, and a product with a mask of ones gives all. So it is done again,
    with other numbers in that tensor and in those beside it: a copy gives these back, too. Where all numbers
    are equal, nothing is known.
    """
    in_place = func._schema.is_mutable and "out" not in kwargs
    if in_place or torch.Tag.nondeterministic_seeded in func.tags:
        return False
    with no_dispatch(), torch._C.DisableTorchFunction(), torch.no_grad(), suppress(Exception):
        for (place, new), old in zip(cycle(enumerate(made)), given, strict=False):  # lists go side by side
            if not _same(new, old):
                continue
            changed = {id(one): _others(one) for one in given if one.numel() > 1 and one.dtype not in INDICES}
            changed[id(old)] = _others(old)
            again = tree_map(lambda one, changed=changed: changed.get(id(one), one), (args, kwargs))
            if "out" in kwargs:
                again[1]["out"] = torch.empty_like(new)
            result = func(*again[0], **again[1])
            if _same((result if isinstance(result, (tuple, list)) else (result,))[place], changed[id(old)]):
                return True
    return False


def _others(tensor: torch.Tensor) -> torch.Tensor:
    """Other numbers in the place of these: larger ones, and every second with the other sign."""
    if not tensor.is_floating_point() and not tensor.is_complex():
        return ~tensor
    signs = 1 - 2 * (torch.arange(tensor.numel(), device=tensor.device) % 2)
    return (1 + 3.7 * tensor) * signs.view(tensor.shape)


def _same(new: torch.Tensor, old: torch.Tensor) -> bool:
    """Whether a tensor has the numbers of another, in other memory, perhaps of another type or shape."""
    kinds = {tensor.dtype == torch.bool for tensor in (new, old)}
    if new.numel() != old.numel() or new.numel() < 2 or len(kinds) > 1 or new.data_ptr() == old.data_ptr():
        return False
    numbers = new.flatten()
    return torch.equal(numbers, old.flatten().to(new.dtype)) and bool((numbers != numbers[0]).any())
