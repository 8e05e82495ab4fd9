"""Work that takes a known time on the clock that judges, and exercises that run in a moment."""

import time

EXERCISES = """# %% id="setup" role="given"
import torch
from autograder import check, race

# %% id="twice_given" role="given"
def twice_slow(x):
    return torch.stack([2 * one for one in x])

def numbers(generator, device):
    return torch.rand(300, generator=generator).to(device)

# %% id="twice" role="answer"
def twice(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION

# %% id="twice_check" role="test"
check(twice, like=twice_slow, on=numbers, points=1)

# %% id="twice_race" role="test"
race(twice, against=twice_slow, on=numbers, at_least={"cpu": 3, "cuda": 3}, points=1)
"""
CHAPTER = """# %%
import torch
from autograder import compare

numbers = lambda generator, device: torch.rand(9, generator=generator).to(device)
compare("two ways", {"one": lambda x: x * 2, "other": lambda x: x + x}, inputs=numbers)
"""


def busy_for(seconds: float) -> None:
    """Compute until this process has used so many seconds of CPU time, however busy the machine is."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
