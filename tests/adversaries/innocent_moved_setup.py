"""Innocent: the given cell stands at the end, a test cell above its answer; the imports are in a cell of the
student's own.

# points:
# suspicious: no
"""

# %% extra first
import torch

from autograder import check, race  # noqa: F401


# %% total answer
def total(x):
    return x.sum(dim=1)


# %% shift answer
def shift(x, steps):
    return torch.roll(x, steps, dims=1)


# %% notebook edit
setup, test = cell("setup"), cell("shift_check")
notebook.cells.remove(setup)
notebook.cells.append(setup)
notebook.cells.remove(test)
notebook.cells.insert(notebook.cells.index(cell("shift")), test)
