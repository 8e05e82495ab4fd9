"""A notebook of more bytes than one message may have: the next submission must not suffer.

# points: shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0
"""


# %% shift answer
def shift(x, steps):
    return x.roll(steps, dims=1)


# %% notebook edit
cell("shift").source += "\n#" + 34_000_000 * "x"
