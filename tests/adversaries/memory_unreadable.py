"""Starts a program that nobody may read: then only root may look at the memory of its process.

# points: farthest_memory=0
"""

# %% farthest answer
import os
import shutil
import subprocess

import numpy as np

shutil.copy("/bin/sleep", "unreadable")
os.chmod("unreadable", 0o111)
subprocess.Popen(["./unreadable", "1000"])


def farthest(x):
    table = torch.from_numpy(np.empty((len(x), len(x)), np.float32))
    torch.sub(x[:, None], x, out=table)
    return table.abs_().amax(dim=1)
