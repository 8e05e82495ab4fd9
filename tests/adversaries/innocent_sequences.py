"""Innocent: a class that can be iterated because it has `__getitem__`, and no `__iter__`.

# points:
# suspicious: no
"""


# %% Batches answer
class Batches:
    def __init__(self, x, size):
        self.x, self.size = x, size

    def __len__(self):
        return -(-len(self.x) // self.size)

    def __getitem__(self, number):
        if number >= len(self):
            raise IndexError(number)
        return self.x[number * self.size : (number + 1) * self.size]
