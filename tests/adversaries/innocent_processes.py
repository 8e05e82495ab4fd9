"""Innocent: a helper cell that asks the shell, runs a subprocess, a pool of processes and a DataLoader with
workers.

# points:
# suspicious: no
"""

# %% extra first
import multiprocessing
import os
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

print(subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout)
get_ipython().system("echo from the shell")
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(abs, [-1, -2]))
loader = DataLoader(TensorDataset(torch.arange(8)), batch_size=4, num_workers=1)
print([batch for (batch,) in loader])
os.makedirs("mine", exist_ok=True)
with open("mine/notes.txt", "w") as file:
    file.write("kept")


# %% shift answer
def shift(x, steps):
    assert open("mine/notes.txt").read() == "kept"
    return torch.roll(x, steps, dims=1)
