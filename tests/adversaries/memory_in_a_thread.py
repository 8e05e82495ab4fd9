"""Has a thread work with a stack that is large enough for all of it, and that is gone when the call ends.

# points: farthest_memory=0
"""

# %% farthest answer
import threading

import numpy as np


def farthest(x):
    found = []

    def work():
        table = np.abs(x.numpy()[:, None] - x.numpy())
        found.append(torch.from_numpy(table.max(axis=1)))

    threading.stack_size(64 << 20)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]
