"""Innocent: numbers are read from a tensor's storage.

# points: shift_cost=0 shift_hidden=0
"""

# %% shift answer
import numpy as np


def shift(x, steps):
    own = x.detach().clone()
    numbers = np.array(own.untyped_storage().tolist(), np.uint8).view(np.float32)
    return torch.from_numpy(np.roll(numbers.reshape(own.shape), steps, axis=1))
