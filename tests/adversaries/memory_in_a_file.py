"""Works in a file, which lies in memory, and removes it.

# points: farthest_memory=0
"""

# %% farthest answer
import os
import tempfile


def farthest(x):
    with tempfile.TemporaryDirectory() as folder:
        table = torch.from_file(os.path.join(folder, "table"), True, len(x) ** 2).view(len(x), len(x))
        torch.sub(x[:, None], x, out=table)
        return table.abs_().amax(dim=1)
