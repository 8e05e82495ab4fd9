"""Innocent: answers that go through NumPy and come back as tensors.

# points:
# suspicious: no
"""

# %% total answer
import numpy as np


def total(x):
    return torch.from_numpy(np.asarray(x.numpy().sum(axis=1)))


# %% shift answer
def shift(x, steps):
    order = np.roll(np.arange(x.shape[1]), steps)
    return x[:, torch.from_numpy(order)]
