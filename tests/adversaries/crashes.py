"""Crashes the interpreter: a read from nowhere, a torch operation out of bounds, endless recursion in C.

# points: shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0 Batches_check=0 Batches_hidden=0
"""

# %% shift answer
import ctypes


def shift(x, steps):
    ctypes.string_at(0)


# %% Batches answer
import os
import signal


class Batches:
    def __init__(self, x, size):
        os.kill(os.getpid(), signal.SIGSEGV)


# %% extra last
import sys

sys.setrecursionlimit(1 << 30)
compile("(" * 50 + "-" * 3_000_000 + "1" + ")" * 50, "", "eval")
