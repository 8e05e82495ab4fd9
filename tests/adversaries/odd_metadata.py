"""Metadata of the notebook and of its cells that no program of ours has written.

# points:
# suspicious: no
"""


# %% shift answer
def shift(x, steps):
    return x.roll(steps, dims=1)


# %% notebook edit
import json

path.parent.mkdir(parents=True)
data = json.loads(json.dumps(notebook))
data["metadata"] = [[7]]
for number, other in enumerate(data["cells"]):
    other["id"] = ["same"]
    if other["cell_type"] == "markdown":
        other["attachments"] = {"\ud800": {"image/png": "\ud800"}}
        other["metadata"] = None
path.write_text(json.dumps(data).replace("[[7]]", "9" * 5000))
