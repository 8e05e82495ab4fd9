"""Gives an empty result when it is timed, and computes it when it is read.

What it computes takes about 1.5 times as long as asked for, so it must not get full points.

# points: total_race<2.95
# suspicious: yes
"""

# %% total answer
import sys

from autograder.sandbox.wire import encode

real, waiting = encode.ResultsInPlace.node, {}


def columns(x):
    out = x.sum(dim=1) * 0
    for column in range(x.shape[1]):
        out += x[:, column]
    return out


def node(self, value):
    if id(value) in waiting:
        value = columns(waiting.pop(id(value)))
    return real(self, value)


encode.ResultsInPlace.node = node


def total(x):
    if sys._getframe(1).f_code.co_name != "on_race_call":
        return columns(x)
    promise = object()
    waiting[id(promise)] = x
    return promise
