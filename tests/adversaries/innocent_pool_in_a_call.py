"""Innocent: pools of processes and threads, and a DataLoader, in the calls of answers that are not raced.

# points:
# suspicious: no
"""

# %% shift answer
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context


def rolled(arguments):
    x, steps = arguments
    return torch.roll(x, steps, dims=1)


def shift(x, steps):
    with ThreadPoolExecutor(2) as pool:
        return next(pool.map(rolled, [(x, steps)]))


# %% Batches answer
from torch.utils.data import DataLoader


class Batches:
    def __init__(self, x, size):
        with get_context("fork").Pool(1) as pool:
            self.number = pool.apply(divmod, (len(x) + size - 1, size))[0]
        self.loader = DataLoader(x, batch_size=size, num_workers=1)

    def __len__(self):
        return self.number

    def __getitem__(self, number):
        return list(self.loader)[number]

    def __iter__(self):
        return iter(self.loader)
