"""Innocent: `torch.compile` in the answers: it takes seconds, but these are not the race's.

# points:
# suspicious: no
"""


# %% total answer
@torch.compile
def total(x):
    return x.sum(dim=1)


# %% shift answer
shift = torch.compile(lambda x, steps: torch.roll(x, steps, dims=1), backend="eager")
