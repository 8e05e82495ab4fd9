"""Does its work in a pool of threads that is there before anything is counted.

# points: shift_cost=0
"""

# %% extra before_shift
from concurrent.futures import ThreadPoolExecutor

pool = ThreadPoolExecutor(1)
pool.submit(print).result()


# %% shift answer
import torch


def work(x, steps):
    width = x.shape[1]
    return torch.stack([x[:, (column - steps) % width].clone() for column in range(width)], dim=1)


def shift(x, steps):
    return pool.submit(work, x, steps).result()
