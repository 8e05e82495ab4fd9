"""What a function should take on this machine: what it asks torch to do, at measured prices.

Each operation, and each view, has the price of a call. An operation takes besides at least as long as moving
its bytes, or as its arithmetic (``limits``). On a GPU calls run ahead of the work, so the longer of the two
counts. The model knows nothing of Python, of new memory, and of the order in which bytes lie: where it is far
off, one of these is at work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .clocks import default_clock, run_block, threads
from .duel import Ratio, Side, fresh_inputs
from .gpus import is_gpu
from .limits import limit
from .units import seconds as as_time
from .units import times

# A prediction that is further off lacks something.
FAR = 1.5
CALLS, TRIES = 500, 7
# Operations that do not read what they are given first.
ONLY_WRITTEN = {"copy_", "fill_", "zero_"}


@dataclass
class Bill:
    """Seconds that a call should take, by what they are for."""

    calls: float = 0.0
    bytes: float = 0.0
    arithmetic: float = 0.0
    ahead: bool = False

    @property
    def total(self) -> float:
        """All of it."""
        work = self.bytes + self.arithmetic
        return max(self.calls, work) if self.ahead else self.calls + work

    def __str__(self) -> str:
        parts = {"calls": self.calls, "bytes": self.bytes, "arithmetic": self.arithmetic}
        return ", ".join(f"{name} {as_time(part)}" for name, part in parts.items() if part > self.total / 50)


@dataclass(frozen=True)
class Prediction:
    """How many times faster the second of two bills is, beside what was ``measured``."""

    device: str
    bills: Mapping[str, Bill]
    measured: Ratio

    cause = "prices"

    @property
    def ratio(self) -> float:
        first, last = (bill.total for bill in self.bills.values())
        return first / last

    @property
    def share(self) -> float:
        """How much of the difference, in logarithms, it explains."""
        return math.log(self.ratio) / (math.log(self.measured.median) or 1e-9)

    def __str__(self) -> str:
        bills = "; ".join(f"{name}: {bill}" for name, bill in self.bills.items())
        off = max(self.ratio / self.measured.median, self.measured.median / self.ratio)
        lacks = " The prices lack something that matters here." if off > FAR else ""
        return (
            f"Predicted from prices, on {self.device}: {times(self.ratio)} ({bills}). "
            f"Measured: {times(self.measured.median)}.{lacks}"
        )


def predict(sides: Mapping[str, Side], device: str, num_threads: int, measured: Ratio) -> Prediction:
    """What the prices of this machine say about two sides.

    Raises ValueError for one that asks torch for nothing, and what the sides raise.
    """
    bills = {}
    for name, side in sides.items():
        given = fresh_inputs(side.inputs, 1, device)
        side.function(*given)  # what is made at the first call is no cost of later ones
        with threads(num_threads), _Priced(device, num_threads) as priced:
            side.function(*given)
        if not priced.bill.total:
            raise ValueError(f"{name!r} asks torch for nothing that has a price.")
        bills[name] = priced.bill
    return Prediction(device, bills, measured)


class _Priced(TorchDispatchMode):
    """Adds up the prices of all operations."""

    def __init__(self, device: str, num_threads: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bill, self._where = Bill(ahead=is_gpu(device)), (device, num_threads)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        from torch.utils.flop_counter import flop_registry

        result = func(*args, **(kwargs or {}))
        self.bill.calls += price_of_a_call(func.is_view, self._where[0])
        if func.is_view:
            return result
        name = func.overloadpacket.__name__
        read = args[1:] if name in ONLY_WRITTEN or name.endswith("_like") else args
        leaves = tree_leaves((read, kwargs, result))
        moved = sum(_bytes(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor))
        count = flop_registry.get(func.overloadpacket)
        flops = count(*args, **(kwargs or {}), out_val=result) if count else 0
        device, num_threads = self._where
        arithmetic = limit(flops=flops, device=device, num_threads=num_threads)
        by_bytes = limit(moved, device=device, num_threads=num_threads)
        if arithmetic > by_bytes:
            self.bill.arithmetic += arithmetic
        else:
            self.bill.bytes += by_bytes
        return result


def _bytes(tensor: torch.Tensor) -> int:
    """What an operation moves of a tensor: repeated elements come out of a cache."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


@cache
def price_of_a_call(view: bool, device: str) -> float:
    """Seconds of an operation on one number, or of a view of it."""
    one = torch.ones(1, device=device)
    function: Callable[[], object] = (lambda: one.view(1)) if view else (lambda: one + one)
    taken = [run_block(function, (), CALLS, device).per_call(default_clock(device)) for _ in range(TRIES)]
    return min(taken[1:])
