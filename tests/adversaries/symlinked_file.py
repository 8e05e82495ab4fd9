"""Hands in a link to a file in the gradebook's folder, for the grader to copy into the feedback.

# points:
"""

# %% notebook edit
import nbformat

path.parent.mkdir(parents=True)
path.write_text(nbformat.writes(notebook))
(path.parent / "notes.txt").symlink_to(handed_in.parent / "secret.txt")
