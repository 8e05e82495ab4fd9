"""The least time that this machine could take for given bytes and floating-point operations.

The roofline model (Williams, Waterman and Patterson, 2009): a computation takes at least as long as moving
its bytes, and at least as long as its arithmetic. Both rates are measured here, once per machine, and kept
in the user's cache folder.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from . import store
from .clocks import default_clock, run_block, threads
from .device import device_name

# Working sets in bytes: from one that fits the innermost caches to one that fits none. The L2 of a GPU
# holds 50 MB and more.
SIZES = (1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26)
SIZES_ON_GPU = (*SIZES, 1 << 28, 1 << 30)
TRIES = 11


def limit(
    bytes: float = 0, flops: float = 0, *, device: str = "cpu", num_threads: int = 1, anew: bool = False
) -> float:
    """Seconds that moving ``bytes`` and computing ``flops`` (float32) takes at the very least on ``device``.

    ``bytes`` counts every byte that must be read or written at least once, ``flops`` additions and
    multiplications. On the CPU with ``num_threads`` threads. ``anew``: whatever was kept of this device may
    have been measured on battery, or beside other work. Raises ValueError for negative amounts.
    """
    if bytes < 0 or flops < 0:
        raise ValueError("bytes and flops must be 0 or more.")
    measured = (rates_anew if anew else rates)(device, num_threads)
    # A working set moves no faster than a somewhat smaller one; sizes were measured in steps of four.
    by_size = measured["bytes_per_second"]
    fitting = [rate for size, rate in by_size if size > min(bytes, by_size[-1][0]) / 4]
    least: float = max(bytes / max(fitting), flops / measured["flops_per_second"])
    return least


def kept_as(device: str, num_threads: int) -> str:
    """The name under which the store keeps the rates of a device."""
    return f"rates {device_name(device)} {num_threads} torch {torch.__version__}"


@functools.cache
def rates(device: str, num_threads: int) -> dict[str, Any]:
    """Measured rates of this device, kept or new."""
    found = store.read(kept_as(device, num_threads))
    if not found:
        found = measure_rates(device, num_threads)
        store.write(kept_as(device, num_threads), found)
    return found


def rates_anew(device: str, num_threads: int) -> dict[str, Any]:
    """The better of the rates that were kept and those measured now, which is kept instead."""
    kept, now = rates(device, num_threads), measure_rates(device, num_threads)
    found = {
        "bytes_per_second": list(map(max, kept["bytes_per_second"], now["bytes_per_second"])),
        "flops_per_second": max(kept["flops_per_second"], now["flops_per_second"]),
    }
    store.write(kept_as(device, num_threads), found)
    rates.cache_clear()
    return found


def measure_rates(device: str, num_threads: int = 1) -> dict[str, Any]:
    """The best rates seen: bytes a second by size of the working set, and float32 operations a second."""
    on_gpu = torch.device(device).type == "cuda"
    with threads(num_threads):
        # Small GPUs hold no more than half of it at once: the context and the products need their part.
        most = torch.cuda.mem_get_info(device)[0] / 2 if on_gpu else SIZES[-1]
        moved = [[size, _bandwidth(size, device)] for size in SIZES_ON_GPU if size <= most]
        side = 8192 if on_gpu else 768
        a, b = torch.rand(side, side, device=device), torch.rand(side, side, device=device)
        arithmetic = 2 * side**3 / best_seconds(lambda: torch.mm(a, b), device, calls=1)
        arithmetic = max(arithmetic, _convolving(device, *((64, 256, 56) if on_gpu else (4, 128, 28))))
    return {"bytes_per_second": moved, "flops_per_second": arithmetic}


def _convolving(device: str, number: int, channels: int, side: int) -> float:
    """Operations a second in a convolution.

    Another library computes it than matrix products: on some CPUs twice as fast, and on GPUs, unless somebody
    forbids it, with products in TF32, which the units for matrices take.
    """
    pictures = torch.rand(number, channels, side, side, device=device)
    weights = torch.rand(channels, channels, 3, 3, device=device)
    operations = 2 * pictures.numel() * weights[:, 0].numel()
    return operations / best_seconds(lambda: torch.conv2d(pictures, weights, padding=1), device, calls=1)


def _bandwidth(size: int, device: str) -> float:
    """Bytes a second with a working set of ``size``, by whatever moves them fastest: copy, fill or read."""
    whole = torch.ones(size // 4, device=device)
    half = whole.chunk(2)
    calls = max(1, math.ceil(2e6 / size) if torch.device(device).type == "cpu" else 20)
    moves = (lambda: half[0].copy_(half[1]), lambda: whole.fill_(1), lambda: whole.sum())
    return size / min(best_seconds(move, device, calls) for move in moves)


def best_seconds(function: Callable[[], object], device: str, calls: int) -> float:
    """Seconds per call of the fastest block: the least disturbed reading."""
    clock = default_clock(device)
    return min(max(run_block(function, (), calls, device).per_call(clock), 1e-9) for _ in range(TRIES))
