"""Innocent: tensors of a class of one's own, which has a method.

# points: shift_hidden<1.1
"""


# %% shift answer
class Columns(torch.Tensor):
    def moved(self, steps):
        return torch.roll(self, steps, dims=1)


def shift(x, steps):
    return x.as_subclass(Columns).moved(steps).as_subclass(torch.Tensor)
