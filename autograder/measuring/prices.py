"""What a function should take on this machine: what it asks torch to do, at measured prices.

Each operation, and each view, has the price of a call. An operation takes besides at least as long as moving
its bytes, or as its arithmetic (``limits``). On a GPU calls run ahead of the work: the longer of the two
counts. The model knows nothing of Python, of new memory, and of the order in which bytes lie.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .clocks import threads
from .duel import Ratio, Side, fresh_inputs
from .gpus import is_gpu
from .limits import best_seconds, limit
from .units import as_time, times

# A prediction that is further off lacks something. A ratio nearer to 1 is hardly a difference.
FAR, LITTLE = 1.5, 1.2
CALLS = 500  # of a block that tells the price of one


@dataclass(frozen=True)
class Prediction:
    """How many times faster the second side should be, beside what was ``measured``.

    ``bills`` are the seconds of each side, by what they are for.
    """

    device: str
    bills: Mapping[str, Mapping[str, float]]
    measured: Ratio
    cause = "prices"

    @property
    def ratio(self) -> float:
        first, last = (self._total(**bill) for bill in self.bills.values())
        return first / last

    @property
    def share(self) -> float | None:
        """How much of the difference, in logarithms, it explains; None where both see hardly any."""
        predicted, measured = math.log(self.ratio), math.log(self.measured.median)
        least = math.log(LITTLE)
        return None if max(abs(predicted), abs(measured)) < least else predicted / (measured or 1e-9)

    def __str__(self) -> str:
        bills = "; ".join(
            f"{name}: "
            + ", ".join(f"{of} {as_time(one)}" for of, one in bill.items() if one > self._total(**bill) / 50)
            for name, bill in self.bills.items()
        )
        off = abs(math.log(self.ratio / self.measured.median)) > math.log(FAR)
        return (
            f"Predicted from prices, on {self.device}: {times(self.ratio)} ({bills}). Measured: "
            f"{times(self.measured.median)}.{' The prices lack something that matters here.' * off}"
        )

    def _total(self, calls: float, bytes: float, arithmetic: float) -> float:
        work = bytes + arithmetic
        return max(calls, work) if is_gpu(self.device) else calls + work


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
        if not priced.bill["calls"]:
            raise ValueError(f"{name!r} asks torch for nothing that has a price.")
        bills[name] = priced.bill
    return Prediction(device, bills, measured)


class _Priced(TorchDispatchMode):
    """Adds up the prices of all operations."""

    def __init__(self, device: str, num_threads: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bill = dict.fromkeys(("calls", "bytes", "arithmetic"), 0.0)
        self._where: dict[str, Any] = {"device": device, "num_threads": num_threads}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from torch.utils.flop_counter import flop_registry

        result = func(*args, **(kwargs or {}))
        self.bill["calls"] += price_of_a_call(func.is_view, self._where["device"])
        name = func.overloadpacket.__name__
        only_written = name in ("copy_", "fill_", "zero_") or name.endswith("_like")
        tensors = tree_leaves((args[1:] if only_written else args, kwargs, result))
        count = flop_registry.get(func.overloadpacket)
        if not func.is_view:
            bytes = limit(sum(map(_bytes, tensors)), **self._where)
            flops = count(*args, **(kwargs or {}), out_val=result) if count else 0
            arithmetic = limit(flops=flops, **self._where)
            self.bill["bytes" if bytes > arithmetic else "arithmetic"] += max(bytes, arithmetic)
        return result


def _bytes(value: object) -> int:
    """What an operation moves of a tensor: repeated elements come out of a cache."""
    if not isinstance(value, torch.Tensor):
        return 0
    return min(value.numel() * value.element_size(), value.untyped_storage().nbytes())


@cache
def price_of_a_call(view: bool, device: str) -> float:
    """Seconds of an operation on one number, or of a view of it."""
    one = torch.ones(1, device=device)
    function: Callable[[], object] = (lambda: one.view(1)) if view else (lambda: one + one)
    return best_seconds(function, device, CALLS)
