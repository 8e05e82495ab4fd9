"""Innocent: warnings, prints, logging, tracebacks that are caught, text on stderr, progress bars.

# points:
# suspicious: no
"""

# %% total answer
import logging
import sys
import warnings

logging.basicConfig(level=logging.INFO)


def total(x):
    warnings.warn("this may be slow", stacklevel=1)
    print("called with", tuple(x.shape))
    print("on stderr", file=sys.stderr)
    logging.getLogger("mine").info("a line of mine")
    return x.sum(dim=1)


# %% shift answer
import warnings

warnings.simplefilter("error")


def shift(x, steps):
    try:
        raise ValueError("caught")
    except ValueError:
        pass
    return torch.roll(x, steps, dims=1)


# %% extra last
1 / 0
