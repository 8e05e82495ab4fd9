"""Innocent: profilers and torch's own timer, used on the answer before it is raced.

# points:
# suspicious: no
"""


# %% total answer
def total(x):
    return x.sum(dim=1)


x = torch.randn(300, 50)
with torch.profiler.profile(record_shapes=True) as profile:
    total(x)
print(profile.key_averages().table(row_limit=5))
profile.export_chrome_trace("trace.json")


# %% extra after_total
# IPython: %prun -q total(x)
import cProfile
import tracemalloc

from torch.utils.benchmark import Timer

tracemalloc.start()
cProfile.run("total(x)")
print(Timer("total(x)", globals=globals()).timeit(10), tracemalloc.get_traced_memory())
tracemalloc.stop()


# %% shift answer
def shift(x, steps):
    with torch.profiler.record_function("roll"):
        return torch.roll(x, steps, dims=1)
