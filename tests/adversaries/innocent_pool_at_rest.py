"""Innocent: a pool of processes and the workers of a DataLoader, which were used in an earlier cell and are
at rest.

# points:
# suspicious: no
"""

# %% extra first
import multiprocessing

import torch
from torch.utils.data import DataLoader, TensorDataset

pool = multiprocessing.get_context("fork").Pool(2)
print(pool.map(abs, [-1, -2]))
loader = DataLoader(TensorDataset(torch.arange(8)), batch_size=4, num_workers=1, persistent_workers=True)
print([batch for (batch,) in loader])


# %% total answer
def total(x):
    return x.sum(dim=1)
