"""Hands in web pages beside the notebook, for the instructor's own server to serve, and settings for it to run.

# points:
"""

# %% notebook edit
from nbformat.v4 import new_markdown_cell

path.parent.mkdir(parents=True)
for name, text in {
    "look.html": "<script>window.adversary = true; document.title = 'adversary'</script>",
    "look.svg": "<svg xmlns='http://www.w3.org/2000/svg'><script>window.adversary = true</script></svg>",
    "look.js": "window.adversary = true",
    "nbgrader_config.py": "open('adversary-was-here', 'w').close()",
    "look.xhtml": "<html xmlns='http://www.w3.org/1999/xhtml'><script>window.adversary = true</script></html>",
    "<img src=x onerror=window.adversary=true>.html": "x",
}.items():
    (path.parent / name).write_text(text)
notebook.cells.append(
    new_markdown_cell("[look](look.html) [look](files/look.html) <script src=look.js></script>")
)
import json

path.write_text(json.dumps(notebook))
