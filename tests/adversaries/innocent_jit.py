"""Innocent: `torch.jit.script`, `torch.vmap` and `torch.func.grad`.

# points:
# suspicious: no
"""


# %% total answer
@torch.jit.script
def total(x: torch.Tensor) -> torch.Tensor:
    return x.sum(dim=1)


# %% shift answer
slope = torch.func.grad(lambda x: (x**2).sum())
assert slope(torch.tensor(3.0)) == 6


def shift(x, steps):
    return torch.vmap(lambda row: torch.roll(row, steps, dims=0))(x)
