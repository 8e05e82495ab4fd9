"""Nonsense in places that nbgrader trusts: versions, kinds, outputs and tags of cells, a character that is none,
and a kernel that is not there.

# points:
"""


# %% shift answer
def shift(x, steps):
    return x.roll(steps, dims=1)


# %% notebook edit
cell("shift").source += "\n# \ud800 is no character"
cell("shift").metadata.nbgrader = {"grade_id": "shift"}
cell("shift_check").cell_type = "markdown"
cell("shift_cost").outputs = [{"output_type": "nonsense"}]
cell("shift_hidden").metadata["tags"] = ["skip-execution"]
cell("shift_copies").metadata.nbgrader = "nonsense"
cell("total").metadata.nbgrader["schema_version"] = 99
notebook.metadata = {"kernelspec": {"name": "no-such-kernel", "display_name": "?"}, "widgets": 3}
