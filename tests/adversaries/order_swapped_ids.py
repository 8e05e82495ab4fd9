"""Swaps the ids of the given cell and of the last test cell, so that each is put back where the other was.

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
first, last = (cell(name).metadata.nbgrader for name in ("setup", "Batches_hidden"))
first["grade_id"], last["grade_id"] = last["grade_id"], first["grade_id"]
