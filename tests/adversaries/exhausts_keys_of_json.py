"""A notebook with two million keys in one object, which counts as one part.

# points:
"""


# %% shift answer
def shift(x, steps):
    return x.roll(steps, dims=1)


# %% notebook edit
import json

path.parent.mkdir(parents=True)
many = ",".join(f'"{number:x}":0' for number in range(2_000_000))
path.write_text(json.dumps({**notebook, "metadata": "HERE"}).replace('"HERE"', f"{{{many}}}"))
