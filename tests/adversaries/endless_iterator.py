"""An object whose loop never ends, each step of it quick: the cell's time limit must still count.

# points: Batches_check=0 Batches_hidden=0
# endless
"""


# %% Batches answer
class Batches:
    def __init__(self, x, size):
        self.x = x

    def __len__(self):
        return 3

    def __iter__(self):
        while True:
            yield self.x


# %% shift answer
def shift(x, steps):
    return x.roll(steps, dims=1)
