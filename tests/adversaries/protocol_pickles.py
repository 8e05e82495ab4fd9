"""Gives objects whose pickled form would run code, or whose methods answer whatever a comparison asks.

# points: shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0
"""

# %% shift answer
import os

import torch


class Anything(torch.Tensor):
    def __reduce__(self):
        return os.system, ("touch /tmp/adversary-was-here",)

    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return lambda *args, **kwargs: self

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return True


def shift(x, steps):
    return x.as_subclass(Anything)
