"""Prints what a hidden test hands in, warns of it, and writes it to stderr.

# points:
"""

# %% total answer
import sys
import warnings


def total(x):
    print("printed", tuple(x.shape))
    print("written", tuple(x.shape), file=sys.stderr)
    warnings.warn(f"warned of {tuple(x.shape)}", stacklevel=1)
    return x.sum(dim=1)
