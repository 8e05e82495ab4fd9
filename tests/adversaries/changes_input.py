"""Right values, but the input is not left alone.

# points: shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0
"""


# %% shift answer
def shift(x, steps):
    result = x.detach().roll(steps, dims=1)
    x.detach().zero_()
    return result
