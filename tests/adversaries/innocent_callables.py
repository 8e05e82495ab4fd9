"""Innocent: answers that are no plain functions: a module, an object with a call, a method, a tuple of a
kind.

# points:
# suspicious: no
"""


# %% total answer
class Total(torch.nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)


total = Total()


# %% shift answer
class Shifter:
    def move(self, x, steps=0):
        return torch.roll(x, steps, dims=1)


shift = Shifter().move


# %% Batches answer
class Batches(list):
    def __init__(self, x, size):
        super().__init__(x.split(size))
