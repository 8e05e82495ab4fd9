"""Gives one column of all that it made, and leaves it to the judge to let go of the others.

# points: farthest_memory=0
"""

# %% farthest answer
import numpy as np


def farthest(x):
    table = np.abs(x.numpy()[:, None] - x.numpy())
    return torch.from_numpy(np.maximum.accumulate(table, axis=1, out=table))[:, -1]
