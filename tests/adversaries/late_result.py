"""A right result in memory that a thread changes after the call, and one that comes from a thread later.

# points: shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0
"""

# %% shift answer
import threading
import time

import torch


def shift(x, steps):
    out = torch.zeros_like(x)

    def later():
        time.sleep(0.2)
        with torch.no_grad():
            out.copy_(x.roll(steps, dims=1))

    threading.Thread(target=later).start()
    return out
