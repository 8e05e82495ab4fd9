"""Innocent: `torch.func.jacfwd` and `torch.func.hessian`.

# points: shift_cost=0 shift_hidden=0
"""


# %% shift answer
def shift(x, steps):
    x = x.detach()
    assert torch.func.hessian(lambda row: (row**3).sum())(torch.ones(2)).tolist() == [[6.0, 0.0], [0.0, 6.0]]
    slopes = torch.func.jacfwd(lambda row: row * 3)(x[0, :2])
    assert torch.equal(slopes, 3 * torch.eye(2))
    return torch.roll(x, steps, dims=1)
