"""Takes its time with everything that is asked of its process, just short of the limits.

# points: shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0
# endless
"""

# %% shift answer
import time


def shift(x, steps):
    time.sleep(6)
    return x.roll(steps, dims=1)
