"""Changes its input by so little that its values pass for the same.

# points: shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0
"""

# %% shift answer
import torch


def shift(x, steps):
    result = torch.roll(x, steps, dims=1)
    with torch.no_grad():
        x.mul_(1.00001)
    return result
