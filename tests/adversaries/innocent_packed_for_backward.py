"""Innocent: what the backward pass needs is packed, in NumPy, until it is needed.

# points: shift_cost=0 shift_hidden=0
"""


# %% shift answer
def shift(x, steps):
    leaf = x.detach().clone().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy().copy(), torch.from_numpy):
        (leaf**2).sum().backward()
    return torch.roll(leaf.grad / 2, steps, dims=1)
