"""Innocent: the setup cell was copied with all that belongs to it, to the end and before the second exercise;
so was a test cell, and an answer whose first version was left above.

# points:
"""


# %% total answer
def total(x):
    return x.sum(dim=1)


# %% shift answer
def shift(x, steps):
    return torch.roll(x, steps, dims=1)


# %% notebook edit
from copy import deepcopy

setup, older = deepcopy(cell("setup")), deepcopy(cell("shift"))
older.source = "def shift(x, steps):\n    return x"
place = next(number for number, other in enumerate(notebook.cells) if other is cell("shift"))
notebook.cells[place:place] = [deepcopy(setup), deepcopy(cell("total_check"))]
notebook.cells = [older, *notebook.cells, setup]
