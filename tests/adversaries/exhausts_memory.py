"""Asks for more memory than there is, in one piece and in many.

# points: shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0
"""

# %% shift answer
import torch


def shift(x, steps):
    try:
        torch.zeros(1 << 38)
    except RuntimeError:
        pass
    kept = []
    while True:
        kept.append(bytearray(64 << 20))
