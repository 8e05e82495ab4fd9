"""Innocent: `torch.jit.trace` of a helper, in the call.

# points: shift_cost=0 shift_hidden=0
"""


# %% shift answer
def shift(x, steps):
    x = x.detach()
    traced = torch.jit.trace(lambda given: given * 2 + 1, x)
    return (torch.roll(traced(x), steps, dims=1) - 1) / 2
