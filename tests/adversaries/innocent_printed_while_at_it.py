"""Innocent: a print that was forgotten, beside a table from another cell.

# points:
"""

# %% extra before_shift
import torch

order = torch.arange(1000).repeat(2)


# %% shift answer
def shift(x, steps):
    print(x)
    width = x.shape[1]
    start = (width - steps) % width
    return torch.cat([x, x], dim=1)[:, start + order[:width]]
