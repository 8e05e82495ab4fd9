"""Innocent: an error of torch's own kind is caught.

# points: shift_cost=0 shift_hidden<1.1
"""


# %% shift answer
def shift(x, steps):
    try:
        torch.linalg.cholesky(-torch.eye(3))
    except torch.linalg.LinAlgError:
        return torch.roll(x, steps, dims=1)
