"""Ends its process, in every way: when it is called, when a cell is run, when the process is copied.

# points: shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0 Batches_check=0 Batches_hidden=0
"""

# %% extra first
import os

os.register_at_fork(after_in_child=lambda: os._exit(0))


# %% shift answer
import sys


def shift(x, steps):
    sys.exit(0)


# %% Batches answer
class Batches:
    def __init__(self, x, size):
        os._exit(0)


# %% extra last
os.kill(os.getpid(), 9)
