"""Hands in all cells in the opposite order, with the names of the given cell defined first.

# points:
"""


# %% extra last
def check(*args, points, **kwargs):
    return points


race = check
total = shift = Batches = total_slow = shift_slow = matrix = small = 0


# %% notebook edit
notebook.cells.reverse()
