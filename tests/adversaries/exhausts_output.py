"""Prints without end what fits into the time, on every stream, and shows thousands of things.

# points:
"""

# %% extra first
import os
import sys
import time

from IPython.display import display

end = time.monotonic() + 1
line = "many words " * 10_000
while time.monotonic() < end:
    print(line)
    sys.stderr.write(line)
    os.write(1, line.encode())
for number in range(3000):
    display({"text/plain": ""}, raw=True)


# %% shift answer
def shift(x, steps):
    print("word " * 100_000)
    return x.roll(steps, dims=1)
