"""Innocent: a process that was started in an earlier cell and sleeps, in a process without threads.

# points:
# suspicious: no
"""

# %% extra first
import multiprocessing
import subprocess
from multiprocessing import shared_memory

sleeper = subprocess.Popen(["sleep", "600"])
context = multiprocessing.get_context("fork")
stop = context.Event()
waiter = context.Process(target=stop.wait, daemon=True)
waiter.start()
memory = shared_memory.SharedMemory(create=True, size=100)


# %% total answer
def total(x):
    return x.sum(dim=1)
