"""Hands in a link to somebody else's notebook, for the grader to follow.

# points: total_check=0 total_hidden=0 total_race=0 shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0
"""

# %% notebook edit
path.parent.mkdir(parents=True)
path.symlink_to(handed_in / "zz_honest" / "assignment" / "assignment.ipynb")
