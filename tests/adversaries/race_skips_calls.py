"""In a block of calls it computes every second one only, and hopes that the others are not looked at.

# points: total_race=0
"""

# %% total answer
import sys

number = 0


def total(x):
    global number
    number += 1
    if sys._getframe(1).f_code.co_name == "on_race_call" and number % 2:
        return x.new_zeros(len(x))
    return x.sum(dim=1)
