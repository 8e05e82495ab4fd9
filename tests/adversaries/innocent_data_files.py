"""Innocent: data of one's own beside the notebook, loaded with torch and NumPy; a module in another
folder.

# points:
# suspicious: no
"""

# %% extra first
import sys

sys.path.insert(0, "src")
import numpy as np
import torch
from rolling import rolled

ORDER = torch.load("order.pt")
WEIGHTS = np.load("weights.npy")
# IPython: %run src/rolling.py


# %% total answer
def total(x):
    return x.sum(dim=int(WEIGHTS[1]))


# %% shift answer
def shift(x, steps):
    assert ORDER.tolist() == [0, 1, 2]
    return rolled(x, steps)


# %% notebook edit
import json

import numpy as np
import torch

(path.parent / "src").mkdir(parents=True)
source = "import torch\n\n\ndef rolled(x, steps):\n    return torch.roll(x, steps, dims=1)\n"
(path.parent / "src" / "rolling.py").write_text(source)
torch.save(torch.arange(3), path.parent / "order.pt")
np.save(path.parent / "weights.npy", np.arange(3))
path.write_text(json.dumps(notebook))
