"""Innocent: a module from another cell with buffers, a cache, and a running state, called by many ways.

# points: shift_cost<1.1 shift_hidden=0
"""

# %% extra before_shift
import torch


class Shift(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.tables = {}
        self.last = None

    def forward(self, x, steps):
        key = x.shape[1], steps
        if key not in self.tables:
            self.tables[key] = (torch.arange(x.shape[1]) - steps) % x.shape[1]
        self.calls += 1
        self.last = x.detach()[:, self.tables[key]]
        return self.last


module = Shift().eval().requires_grad_(False)


# %% shift answer
def shift(x, steps):
    before = module.calls.item()
    result = module(x, steps).clone()
    assert module.calls.item() == before + 1 and torch.equal(result, module.last)
    state = {name: value.clone() for name, value in module.state_dict().items()}
    module.load_state_dict(state)
    return result
