"""Hands its work to a thread of its own making, which waits at a queue.

# points: shift_cost=0
"""

# %% extra before_shift
import threading
from queue import Queue

import torch

todo, done = Queue(), Queue()


class Worker(threading.Thread):
    def run(self):
        while True:
            x, steps = todo.get()
            width = x.shape[1]
            parts = [x[:, (column - steps) % width].clone() for column in range(width)]
            done.put(torch.stack(parts, dim=1))


Worker(daemon=True).start()


# %% shift answer
def shift(x, steps):
    todo.put((x, steps))
    return done.get()
