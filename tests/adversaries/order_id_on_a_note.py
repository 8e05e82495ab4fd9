"""Deletes the given cell, and gives its id to a note at the end.

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
from nbformat.v4 import new_markdown_cell

notes = dict(cell("setup").metadata.nbgrader)
notebook.cells.remove(cell("setup"))
notebook.cells.append(new_markdown_cell("A note.", metadata={"nbgrader": notes}))
