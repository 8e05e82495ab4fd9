"""Innocent: constants with names such as `N_CLASSES` beside IPython's own commands, in the cells of answers.

# points:
# suspicious: no
"""

# %% extra first
# IPython: %matplotlib inline
N_CLASSES = 10
# IPython: N_CPUS = !nproc


# %% total answer
# IPython: %%time
IN_CHANNELS, N_C = 3, 1


def total(x):
    return x.sum(dim=N_C)


# %% shift answer
# IPython: %precision 3
N_CLASSES, MAX_COLUMNS = 10, 100
# IPython: torch.roll?


def shift(x, steps):
    return torch.roll(x, steps, dims=1)


# IPython: %timeit -n 1 -r 1 shift(torch.ones(3, 4), 1)
# IPython: !ls -a
# IPython: files = !ls
# IPython: ?torch.roll


# %% Batches answer
class Batches(list):
    def __init__(self, x, size):
        super().__init__(x.split(size))


# IPython: %who
# IPython: %pwd
