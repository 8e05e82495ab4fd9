"""Innocent: what was there before a call gets new data in it.

# points: shift_hidden=0
"""

# %% extra before_shift
import torch

kept = torch.nn.Parameter(torch.zeros(1))


# %% shift answer
def shift(x, steps):
    kept.data = torch.roll(x.detach(), steps, dims=1)
    return kept.data
