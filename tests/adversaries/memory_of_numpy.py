"""Works in an array of NumPy's, which no operation of torch's made.

# points: farthest_memory=0
"""

# %% farthest answer
import numpy as np


def farthest(x):
    table = torch.from_numpy(np.empty((len(x), len(x)), np.float32))
    torch.sub(x[:, None], x, out=table)
    return table.abs_().amax(dim=1)
