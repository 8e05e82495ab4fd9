"""Innocent: the numbers of a model from another cell come from a tensor.

# points: shift_hidden=0 shift_cost<1.1
"""

# %% extra before_shift
import torch

model = torch.nn.Linear(9, 7, bias=False)
large = torch.nn.Linear(50, 400, bias=False)


# %% shift answer
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def shift(x, steps):
    rolled = torch.roll(x.detach(), steps, dims=1)
    chosen = model if len(x) == 7 else large
    vector = torch.cat([rolled.reshape(-1), torch.zeros(chosen.weight.numel() - rolled.numel())])
    vector_to_parameters(vector, chosen.parameters())
    return parameters_to_vector(chosen.parameters()).detach()[: x.numel()].view(x.shape)
