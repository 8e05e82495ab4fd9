"""Hands in under other names, too: with markup, and with characters that turn a page or a terminal round.

# points:
"""

# %% notebook edit
import json

for name in (
    "<img src=x onerror=window.adversary=true>",
    "ada\u202e\u200b",
    "a\nb",
    "a\x1b[2J",
    'x";alert(1)//',
):
    if "/" not in name:
        folder = handed_in / name / path.parent.name
        folder.mkdir(parents=True)
        (folder / path.name).write_text(json.dumps(notebook))
