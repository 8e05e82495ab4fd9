"""Gives a result that is nested too deeply, and one that holds itself.

# points: shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0 Batches_check=0 Batches_hidden=0
"""


# %% shift answer
def shift(x, steps):
    result = x
    for _ in range(5000):
        result = [result]
    return result


# %% Batches answer
class Batches:
    def __init__(self, x, size):
        self.all = []
        self.all.append(self.all)

    def __len__(self):
        return 3

    def __getitem__(self, number):
        return self.all

    def __iter__(self):
        return iter(self.all)
