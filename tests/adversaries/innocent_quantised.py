"""Innocent: numbers of 8 bits on the way.

# points: shift_cost=0 shift_hidden=0
"""


# %% shift answer
def shift(x, steps):
    rows = torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.qint8)
    assert rows.dequantize().tolist() == [1, 1, 1]
    return torch.roll(x.detach(), steps, dims=1)
