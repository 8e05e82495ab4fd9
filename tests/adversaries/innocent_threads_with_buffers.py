"""Innocent: threads that work in buffers of their own.

# points: shift_cost=0 shift_hidden=0
"""

# %% shift answer
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat


def rolled(row, steps):
    buffer = torch.zeros(len(row))
    buffer += row.detach()
    return buffer.roll(steps)


def shift(x, steps):
    with ThreadPoolExecutor(2) as pool:
        return torch.stack(list(pool.map(rolled, x, repeat(steps))))
