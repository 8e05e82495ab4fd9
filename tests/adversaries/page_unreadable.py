"""A file that is no notebook, with Markdown in the line that its author is told about.

# points: total_check=0
"""

# %% notebook edit
path.parent.mkdir(parents=True)
path.write_text("` <img src=x onerror='adversary=true'> **30 of 30**")
(path.parent / "` <script>window.adversary=true<` **all** ![x](https:.ipynb").write_text("x")
