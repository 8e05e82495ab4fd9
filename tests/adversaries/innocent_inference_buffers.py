"""Innocent: an answer under `inference_mode` that writes into a buffer from another cell, with `out=`.

# points: shift_hidden=0
"""

# %% extra before_shift
import torch

small = torch.empty(7, 9)


# %% shift answer
@torch.inference_mode()
def shift(x, steps):
    buffer = small if x.shape == small.shape else torch.empty(x.shape)
    start = (x.shape[1] - steps) % x.shape[1]
    return torch.cat([x[:, start:], x[:, :start]], dim=1, out=buffer).clone()
