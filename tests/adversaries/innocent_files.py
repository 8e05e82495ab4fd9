"""Innocent: modules of the student's own, a package and data, handed in beside the notebook.

# points:
# suspicious: no
"""

# %% file helpers
import torch


def sums(x):
    return x.sum(dim=1)


def rolled(x, steps):
    return torch.roll(x, steps, dims=1)


# %% file test
"""The name of a module of Python's own, which stands behind one beside the notebook."""

mine = True


# %% extra first
import json

import helpers
import test

assert test.mine
with open("parts/sizes.json") as file:
    SIZES = json.load(file)
from parts.batches import Parts


# %% total answer
def total(x):
    return helpers.sums(x)


# %% shift answer
shift = helpers.rolled


# %% Batches answer
class Batches(Parts):
    pass


# %% notebook edit
import json

parts = path.parent / "parts"
parts.mkdir(parents=True)
(parts / "__init__.py").write_text("")
(parts / "sizes.json").write_text("[1, 2]")
(parts / "batches.py").write_text(
    "class Parts(list):\n    def __init__(self, x, size):\n        super().__init__(x.split(size))\n"
)
(parts / "__pycache__").mkdir()
(parts / "__pycache__" / "batches.cpython-311.pyc").write_text("old")
path.write_text(json.dumps(notebook))
