"""Innocent: tests and timings of one's own below an answer, an unfinished exercise that is no Python, a very
long output.

# points: shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0
# suspicious: no
"""

# %% extra first
for number in range(200_000):
    print(number)
print("x" * 2_000_000)


# %% total answer
import time
import timeit


def total(x):
    return x.sum(dim=1)


x = torch.randn(300, 50)
start = time.perf_counter()
assert torch.allclose(total(x), total_slow(x), rtol=1e-4, atol=1e-4), "not yet right"
print(f"{1e6 * (time.perf_counter() - start):.1f} us", timeit.timeit(lambda: total(x), number=10))
check(total, like=total_slow, on=matrix, points=1)
race(total, against=total_slow, on=matrix, at_least={"cpu": 2}, points=1)


# %% shift answer
# IPython: def shift(x, steps)
# IPython:     return to be done


# %% extra after_shift_copies
# IPython: %%timeit
total(x)


# %% Batches answer
class Batches(list):
    def __init__(self, x, size):
        super().__init__(x.split(size))


assert len(Batches(torch.ones(3, 2), 2)) == 3, "one of my own tests fails"
