"""A right answer that never returns when it is timed; the exercises after it must still be judged.

# points: total_race=0 shift_cost=0
# endless
"""

# %% total answer
import sys


def total(x):
    while sys._getframe(1).f_code.co_name == "on_race_call":
        pass
    return x.sum(dim=1)


# %% shift answer
def shift(x, steps):
    return x.roll(steps, dims=1)
