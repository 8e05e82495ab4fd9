"""Innocent: answers under `torch.inference_mode` and `torch.no_grad`, and one that records what it needs.

# points: shift_hidden=0
# suspicious: no
"""


# %% total answer
@torch.inference_mode()
def total(x):
    return x.sum(dim=1)


# %% shift answer
@torch.no_grad()
def shift(x, steps):
    return torch.roll(x, steps, dims=1)


# %% Batches answer
class Batches(list):
    @torch.inference_mode()
    def __init__(self, x, size):
        super().__init__(x.split(size))
