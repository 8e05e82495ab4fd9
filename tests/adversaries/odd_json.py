"""JSON that Python reads and few others do: keys twice, numbers without end, 900 levels, a million empty lines.

# points:
"""


# %% shift answer
def shift(x, steps):
    return x.roll(steps, dims=1)


# %% notebook edit
import json

path.parent.mkdir(parents=True)
data = json.loads(json.dumps(notebook))
data["metadata"] = "HERE"
for other in data["cells"]:
    other["execution_count"] = "HERE"
    if other.get("metadata", {}).get("nbgrader", {}).get("grade_id") == "shift":
        other["source"] = [other["source"], *[""] * 1_000_000]
deep = "[" * 400 + "]" * 400
odd = f'{{"a": NaN, "a": Infinity, "b": 1e999, "c": -1E-999, "d": {deep}, "cells": []}}'
text = json.dumps(data).replace('"HERE"', odd)
path.write_text('{"cells": [], "nbformat": 3, ' + text[1:])
