"""Raw cells of all kinds: some exporters put them into a page as they are.

# points:
"""

# %% notebook edit
from nbformat.v4 import new_raw_cell

for kind in (None, "", "text/html", "TEXT/HTML", "text/markdown", "text/latex", "application/javascript"):
    raw = new_raw_cell(
        "raw-cell-was-here <script>window.adversary=true</script><div style='position:fixed'>x</div>"
    )
    if kind is not None:
        raw.metadata["raw_mimetype"] = raw.metadata["format"] = kind
    notebook.cells.append(raw)
    notebook.cells.insert(0, raw.copy())
