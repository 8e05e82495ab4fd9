"""Files beside the notebook with the longest paths that a file system takes, one inside the other.

# points:
"""

# %% shift answer


def shift(x, steps):
    return x.roll(steps, dims=1)


# %% notebook edit
import os

path.parent.mkdir(parents=True)
here = os.open(path.parent, os.O_RDONLY)
for number in range(14):
    name = f"{number:03}" + "n" * 250
    os.mkdir(name, dir_fd=here)
    here = os.open(name, os.O_RDONLY, dir_fd=here)
    os.close(os.open("x" * 255, os.O_CREAT | os.O_WRONLY, dir_fd=here))
for name in ("-rf", "~", "$(id)", ".hidden.py", "a b;c.py", "__init__.py", "torch", "autograder"):
    (path.parent / name).write_text("1 / 0")
import json

path.write_text(json.dumps(notebook))
