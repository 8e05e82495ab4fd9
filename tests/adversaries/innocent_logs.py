"""Innocent: logging to a file and to stderr, and warnings as errors elsewhere.

# points:
# suspicious: no
"""

# %% extra first
import logging
import sys

logging.basicConfig(level=logging.DEBUG, handlers=[logging.FileHandler("log.txt"), logging.StreamHandler()])
log = logging.getLogger(__name__)
log.addHandler(logging.StreamHandler(sys.stdout))
log.info("begun")


# %% total answer
def total(x):
    log.debug("%s rows", len(x))
    return x.sum(dim=1)


# %% shift answer
def shift(x, steps):
    log.warning("moving by %s", steps)
    with open("log.txt") as file:
        assert "moving by" in file.read()
    return torch.roll(x, steps, dims=1)
