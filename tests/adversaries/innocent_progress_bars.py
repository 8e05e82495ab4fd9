"""Innocent: progress bars in a cell and in an answer, left open.

# points:
# suspicious: no
"""

# %% extra first
import time

from tqdm import tqdm, trange

bar = tqdm(total=3, desc="left open")
for _ in trange(3):
    time.sleep(0.01)
    bar.update()


# %% total answer
def total(x):
    return x.sum(dim=1)


# %% shift answer
def shift(x, steps):
    for _ in tqdm(range(1), leave=False):
        result = torch.roll(x, steps, dims=1)
    return result


# %% extra after_shift
tqdm.write("done")
