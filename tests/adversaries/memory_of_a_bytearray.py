"""Works in memory of Python's own.

# points: farthest_memory=0
"""


# %% farthest answer
def farthest(x):
    table = torch.frombuffer(bytearray(4 * len(x) ** 2), dtype=torch.float32).view(len(x), len(x))
    torch.sub(x[:, None], x, out=table)
    return table.abs_().amax(dim=1)
