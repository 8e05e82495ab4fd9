"""Hands in a link to a whole folder elsewhere, with a right answer in it.

# points: total_check=0 total_hidden=0 total_race=0
"""

# %% notebook edit
import json

elsewhere = handed_in.parent / "elsewhere"
elsewhere.mkdir()
cell("total").source = "def total(x):\n    return x.sum(dim=1)"
(elsewhere / path.name).write_text(json.dumps(notebook))
path.parent.parent.mkdir(parents=True)
path.parent.symlink_to(elsewhere)
