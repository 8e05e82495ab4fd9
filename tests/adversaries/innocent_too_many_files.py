"""Innocent: a data set beside the notebook, which is larger than what grading takes; a small module is taken.

# points:
# suspicious: no
"""

# %% file tiny
FACTOR = 1


# %% extra first
import tiny

try:
    open("numbers.bin")
except FileNotFoundError as error:
    print("nothing to load:", error)


# %% shift answer
def shift(x, steps):
    return torch.roll(x, steps * tiny.FACTOR, dims=1)


# %% notebook edit
import json

path.parent.mkdir(parents=True)
(path.parent / "numbers.bin").write_bytes(bytes(6_000_000))
path.write_text(json.dumps(notebook))
