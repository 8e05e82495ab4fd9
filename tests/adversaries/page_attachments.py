"""Attachments and pictures that are no pictures, with names, kinds and contents that leave their attribute.

# points:
"""

# %% notebook edit
from base64 import b64encode

from nbformat.v4 import new_markdown_cell

svg = b64encode(b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.adversary=true'/>").decode()
edit = new_markdown_cell(
    "![a](attachment:a.svg) ![b](attachment:b.png) ![c](attachment:c) ![d](attachment:missing) "
    "<img src='attachment:a.svg'> ![e](attachment:e.png) ![\"><script>window.adversary=true</script>](attachment:b.png)"
)
edit.attachments = {
    "a.svg": {"image/svg+xml": svg},
    "b.png": {"image/png": 'x"><img src=x onerror="window.adversary=true">'},
    "c": {'text/html;base64,x" onerror="window.adversary=true': "x"},
    "e.png": {"image/png": "x" * 3_000_000},
    '"><script>window.adversary=true</script>': {"image/png": "x"},
}
notebook.cells.append(edit)
again = new_markdown_cell("![e](attachment:e.png)\n\n" * 300)
again.attachments = {"e.png": {"image/png": "QUFB" * 500_000}}
notebook.cells.append(again)
