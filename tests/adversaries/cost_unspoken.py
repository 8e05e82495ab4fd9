"""As `cost_modes_off`; no name in the code tells what it does.

# points: shift_cost=0
"""

# %% shift answer
import torch

dispatch = vars(torch.utils)["_python" + "_dispatch"]
off = vars(dispatch)["_disable" + "_current_modes"]


def shift(x, steps):
    width = x.shape[1]
    with off():
        return torch.stack([x[:, (column - steps) % width].clone() for column in range(width)], dim=1)
