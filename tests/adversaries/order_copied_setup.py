"""Appends a copy of the given cell, as if it were the one that counts, and defines the names in it before.

# points:
"""


# %% extra before_total_check
def check(*args, points, **kwargs):
    return points


race = check
total = shift = Batches = total_slow = shift_slow = matrix = small = 0


# %% extra before_shift_check
shift = 0

# %% notebook edit
from copy import deepcopy

notebook.cells.append(deepcopy(cell("setup")))
