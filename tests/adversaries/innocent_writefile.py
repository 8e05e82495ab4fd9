"""Innocent: a module written with `%%writefile` and imported, and one that is run.

# points:
"""

# %% extra first
# IPython: %%writefile my_helpers.py
import torch

N_CLASSES = 10


def sums(x):
    return x.sum(dim=1)


def rolled(x, steps):
    return torch.roll(x, steps, dims=1)


# %% extra before_total
# IPython: %load_ext autoreload
# IPython: %autoreload 2
# IPython: %run my_helpers.py
import my_helpers
from my_helpers import rolled


# %% total answer
def total(x):
    return my_helpers.sums(x)


# %% shift answer
def shift(x, steps):
    return rolled(x, steps)
