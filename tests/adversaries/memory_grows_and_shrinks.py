"""Has its pages grow when it works, and shrink when the call ends, each time in another place.

# points: farthest_memory=0
"""

# %% farthest answer
import mmap

import numpy as np

pages = mmap.mmap(-1, 4096, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)


def work(x):
    table = torch.from_numpy(np.frombuffer(pages, np.float32)[: len(x) ** 2]).view(len(x), len(x))
    torch.sub(x[:, None], x, out=table)
    return table.abs_().amax(dim=1)


def farthest(x):
    global pages
    pages = mmap.mmap(-1, 4 * len(x) ** 2, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    result = work(x)
    pages.madvise(9)  # MADV_REMOVE
    pages = None
    return result
