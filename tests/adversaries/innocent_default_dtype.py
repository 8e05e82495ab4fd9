"""Innocent: numbers are of 64 bits by default.

# points: shift_hidden=0 shift_cost=0
"""

# %% shift answer
torch.set_default_dtype(torch.float64)


@torch.no_grad()
def shift(x, steps):
    width = x.shape[1]
    result = torch.zeros(x.shape)
    result.index_copy_(1, (torch.arange(width) + steps) % width, x.double())
    return result.to(x.dtype)
