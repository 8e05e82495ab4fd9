"""Innocent: a pool of threads that was used in an earlier cell and is still there, and threads within a call.

# points:
# suspicious: no
"""

# %% extra first
from concurrent.futures import ThreadPoolExecutor

pool = ThreadPoolExecutor(3)
list(pool.map(abs, range(10)))


# %% total answer
def total(x):
    return x.sum(dim=1)


# %% shift answer
def shift(x, steps):
    left, right = pool.map(lambda part: part.clone(), (x, x))
    return torch.roll(left, steps, dims=1)


# %% Batches answer
import threading


class Batches:
    def __init__(self, x, size):
        thread = threading.Thread(target=self.fill, args=(x, size))
        thread.start()
        thread.join()

    def fill(self, x, size):
        self.parts = x.split(size)

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, number):
        return self.parts[number]

    def __iter__(self):
        return iter(self.parts)
