"""Innocent: a pool of two processes, each with a part of the rows.

# points: shift_cost<1.1 shift_hidden=0
"""

# %% shift answer
from multiprocessing import get_context


def rolled(arguments):
    x, steps = arguments
    return torch.roll(x, steps, dims=1)


def shift(x, steps):
    x = x.detach()
    with get_context("fork").Pool(2) as pool:
        parts = pool.map(rolled, [(x[:4], steps), (x[4:], steps)])
    return torch.cat(parts)
