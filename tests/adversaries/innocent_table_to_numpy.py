"""Innocent: a table from another cell, which torch made, is read with NumPy.

# points:
"""

# %% extra before_shift
import numpy as np
import torch

places = torch.arange(100)


# %% shift answer
def shift(x, steps):
    order = np.roll(places.numpy()[: x.shape[1]], steps)
    return x[:, torch.from_numpy(order)]
