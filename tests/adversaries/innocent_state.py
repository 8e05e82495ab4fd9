"""Innocent: changes torch's defaults, random state and precision in a helper cell, and puts nothing back.

# points:
# suspicious: no
"""

# %% extra first
import random

import torch

torch.manual_seed(1)
random.seed(1)
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.use_deterministic_algorithms(True)
torch.set_printoptions(precision=2)


# %% total answer
def total(x):
    return x.sum(dim=1)


# %% extra after_total
torch.set_default_dtype(torch.float32)
torch.set_grad_enabled(True)


# %% shift answer
def shift(x, steps):
    return torch.roll(x, steps, dims=1)
