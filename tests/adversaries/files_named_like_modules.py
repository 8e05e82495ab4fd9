"""Hands in files named like modules, for the grader or the judge to import.

# points:
"""

# %% file torch
open("/tmp/adversary-was-here", "w")
raise SystemExit("the wrong torch")


# %% file alembic
open("/tmp/adversary-was-here", "w")
raise SystemExit("the wrong alembic")


# %% file autograder
def check(*args, points, **kwargs):
    return points


race = check


# %% file sitecustomize
open("/tmp/adversary-was-here", "w")


# %% shift answer
def shift(x, steps):
    return x.roll(steps, dims=1)
