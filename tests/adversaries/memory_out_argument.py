"""Has an operation make its memory in a tensor that was empty when the count saw it.

# points: farthest_memory=0
"""


# %% farthest answer
def farthest(x):
    table = torch.empty(0)
    torch.sub(x[:, None], x, out=table)
    return table.abs_().amax(dim=1)
