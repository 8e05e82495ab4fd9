"""Innocent: `functools.lru_cache` on an answer and on its helper; a recursive helper.

# points:
# suspicious: no
"""

# %% total answer
import functools


@functools.lru_cache(maxsize=64)
def total(x):
    return x.sum(dim=1)


# %% shift answer
@functools.cache
def gcd(a, b):
    return a if b == 0 else gcd(b, a % b)


@functools.lru_cache
def order(width, steps):
    assert gcd(width, steps) >= 1
    return torch.arange(width).roll(steps)


def shift(x, steps):
    return x[:, order(x.shape[1], steps)]
