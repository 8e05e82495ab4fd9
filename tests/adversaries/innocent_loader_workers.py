"""Innocent: a DataLoader with two workers, in calls that are counted.

# points: shift_cost<1.1 shift_hidden=0
"""

# %% shift answer
from torch.utils.data import DataLoader


def shift(x, steps):
    loader = DataLoader(x.detach(), batch_size=100, num_workers=2)
    return torch.cat([torch.roll(part, steps, dims=1) for part in loader])
