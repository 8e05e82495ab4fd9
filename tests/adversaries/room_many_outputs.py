"""Shows so many things, and prints so much in so many cells, that no page could hold them.

# points:
"""

# %% extra first
import sys

from IPython.display import display

for number in range(20_000):
    print(number % 10, end="")
    print(number % 10, end="", file=sys.stderr)
    display({"text/plain": ""}, raw=True)

# %% extra first
for _ in range(200):
    get_ipython().run_cell("pass")


# %% shift answer
def shift(x, steps):
    print("a")
    print("b", file=sys.stderr)
    return x.roll(steps, dims=1)
