"""Innocent: an answer and the helper before it were moved to the end, with a note; Run All was never pressed.

# points:
# suspicious: no
"""

# %% extra before_shift
STEPS_BACK = -1


def wrapped(steps, width=9, sign=STEPS_BACK):
    return -sign * steps


# %% shift answer
def shift(x, steps, wrap=wrapped):
    return torch.roll(x, wrap(steps), dims=1)


# %% total answer
def total(x):
    return x.sum(dim=1)


# %% notebook edit
from nbformat.v4 import new_markdown_cell

place = notebook.cells.index(cell("shift"))
helper, answer = notebook.cells[place - 1 : place + 1]
del notebook.cells[place - 1 : place + 1]
notebook.cells += [new_markdown_cell("My second exercise."), helper, answer]
