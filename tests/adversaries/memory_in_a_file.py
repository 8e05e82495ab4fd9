"""Works in a file, which lies in memory, and removes it.

# points: farthest_memory=0
"""

# %% farthest answer
import tempfile

import numpy as np


def farthest(x):
    with tempfile.TemporaryFile() as file:
        table = torch.from_numpy(np.memmap(file, np.float32, "w+", shape=(len(x), len(x))))
        torch.sub(x[:, None], x, out=table)
        return table.abs_().amax(dim=1)
