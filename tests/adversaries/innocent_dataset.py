"""Innocent: a data set and a model in memory, and an answer in pieces, with NumPy among them.

# points:
# suspicious: no
"""

# %% extra before_farthest
import numpy as np

data = torch.randn(300, 3, 100, 100)
words = {f"word {number}": [number] * 5 for number in range(200_000)}
model = torch.nn.Sequential(*[torch.nn.Linear(300, 300) for _ in range(20)])


# %% farthest answer
def farthest(x):
    ends = [np.abs(x.numpy() - end).astype(np.float32) for end in (x.min().item(), x.max().item())]
    return torch.from_numpy(np.maximum(*ends))
