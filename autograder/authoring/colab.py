"""The first cell of every notebook: it fetches the course for Google Colab and Kaggle."""

from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from ..roles import FETCHES_COURSE

TAG = "colab"
METADATA = {
    "jupyter": {"source_hidden": True},  # JupyterLab folds it up
    "tags": [TAG, "remove-cell"],  # the website leaves it out
}

# Their torch stays as it is: the course's package is imported from the clone, and the one package installed
# (msgspec reads the course's tables) needs no other.
# When the cell runs again, the current folder is in the clone.
SOURCE = f"{FETCHES_COURSE}\n" + Path(__file__).with_name("colab_cell.txt").read_text("utf-8").rstrip()


def colab_cell(address: str, folder: str) -> NotebookNode:
    """The cell for a notebook that is in ``folder`` of the repository at ``address``."""
    source = SOURCE.format(address=address, folder=folder)
    return new_code_cell(source, id=TAG, metadata=METADATA)


def is_colab_cell(cell: NotebookNode) -> bool:
    """Whether it is this cell; an older version of it, too."""
    return TAG in cell.metadata.get("tags", ())
