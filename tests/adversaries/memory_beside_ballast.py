"""Keeps much memory that it never touches, beside the scratch that it made when it was defined.

# points: farthest_memory=0
"""

# %% farthest answer
ballast = torch.ones(32 << 20)
table = torch.ones(1900, 2000)


def farthest(x):
    halves = []
    for rows in x.split(1900):
        part = table[: len(rows)]
        torch.sub(rows[:, None], x, out=part)
        halves.append(part.abs_().amax(dim=1))
    return torch.cat(halves)
