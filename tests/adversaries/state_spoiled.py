"""Leaves torch's defaults, precision, threads and random state spoiled for whoever comes after it.

# points:
"""

# %% shift answer
import torch

torch.set_default_dtype(torch.float16)
torch.set_float32_matmul_precision("medium")
torch.set_num_threads(1)
torch.manual_seed(0)
torch.set_flush_denormal(True)
torch.autograd.set_detect_anomaly(True)


def shift(x, steps):
    return torch.roll(x, steps, dims=1)
