"""Right and slow in every first call, wrong and cheap in every second one.

# points: shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0
"""

# %% shift answer
import torch

calls = 0


def shift(x, steps):
    global calls
    calls += 1
    if calls % 2 == 0:
        return x
    width = x.shape[1]
    return torch.stack([x[:, (column - steps) % width].clone() for column in range(width)], dim=1)
