"""Innocent: values are changed through `.data`, storages and in place, of tensors that the call made.

# points: shift_cost=0 shift_hidden=0
"""


# %% shift answer
def shift(x, steps):
    x = x.detach()
    made = torch.zeros(x.shape)
    made.data = torch.roll(x, steps, dims=1)
    other = torch.empty_like(made)
    other.untyped_storage().copy_(made.untyped_storage())
    other.untyped_storage().resize_(2 * other.untyped_storage().nbytes())
    third = torch.empty(0).set_(other)
    fourth = torch.nn.Parameter(third.clone(), requires_grad=False)
    fourth.data.add_(1).sub_(1)
    return fourth.data
