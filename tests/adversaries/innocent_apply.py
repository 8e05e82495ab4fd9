"""Innocent: `apply_`, which calls a function of Python's for each number.

# points: shift_hidden=0
"""


# %% shift answer
@torch.no_grad()
def shift(x, steps):
    return torch.roll(x, steps, dims=1).apply_(lambda number: number)
