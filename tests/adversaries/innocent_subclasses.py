"""Innocent: results that are tensors of a kind: a mask of torchvision's, a class of one's own.

# points:
# suspicious: no
"""

# %% total answer
from torchvision import tv_tensors


def total(x):
    return tv_tensors.wrap(x.sum(dim=1), like=tv_tensors.Mask(torch.zeros(1, 1, dtype=torch.uint8)))


# %% shift answer
class Mine(torch.Tensor):
    pass


def shift(x, steps):
    return torch.roll(x, steps, dims=1).as_subclass(Mine)
