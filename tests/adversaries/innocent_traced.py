"""Innocent: `tracemalloc` runs while the answer is raced; seeds that are set in each call.

# points:
# suspicious: no
"""

# %% extra first
import tracemalloc

tracemalloc.start(25)


# %% total answer
def total(x):
    return x.sum(dim=1)


# %% shift answer
import random

import numpy as np
import torch


def shift(x, steps):
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    return torch.roll(x, steps, dims=1)
