"""Innocent: `await` outside of functions, an event loop in an answer, closures, recursion, `__main__`.

# points:
# suspicious: no
"""

# %% extra first
from __future__ import annotations

import asyncio


async def later(value: Missing | None):
    await asyncio.sleep(0.01)
    return value


# IPython: print(await later(3))


# %% total answer
def counted(function):
    calls = 0

    def wrapper(*args):
        nonlocal calls
        calls += 1
        return function(*args)

    return wrapper


@counted
def total(x: torch.Tensor) -> torch.Tensor:
    return x.sum(dim=1)


if __name__ == "__main__":
    print(total(torch.ones(2, 3)))


# %% shift answer
def shift(x, steps):
    return asyncio.run(later(torch.roll(x, steps, dims=1)))


# %% Batches answer
def halves(x, size):
    return [] if len(x) == 0 else [x[:size], *halves(x[size:], size)]


Batches = halves
