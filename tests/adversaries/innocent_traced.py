"""Innocent: `tracemalloc` runs while the answer is raced; `vmap`, and seeds that are set in each call.

# points:
# suspicious: no
"""

# %% extra first
import tracemalloc

tracemalloc.start()


# %% total answer
def total(x):
    return torch.func.vmap(torch.sum)(x)


# %% shift answer
import random

import numpy as np


def shift(x, steps):
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    return torch.roll(x, steps, dims=1)
