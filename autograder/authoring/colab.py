"""The first cell of every notebook: it fetches the course for Google Colab and Kaggle."""

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from ..roles import FETCHES_COURSE

TAG = "colab"
METADATA = {
    "jupyter": {"source_hidden": True},  # JupyterLab folds it up
    "tags": [TAG, "remove-cell"],  # the website leaves it out
}

# Nothing is installed, so their torch stays as it is: the course's package is imported from the clone.
# When the cell runs again, the current folder is in the clone.
SOURCE = (
    f"{FETCHES_COURSE}\n"
    """\
import os
import sys

if "google.colab" in sys.modules or "KAGGLE_KERNEL_RUN_TYPE" in os.environ:
    import subprocess

    home = os.getcwd().partition("/fast-pytorch")[0] + "/fast-pytorch"
    if not os.path.isdir(f"{{home}}/autograder"):
        os.environ["GIT_TERMINAL_PROMPT"] = "0"
        clone = ["git", "clone", "--quiet", "--depth=1", "{address}", home]
        done = subprocess.run(clone, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            hint = "On Kaggle, switch Internet on, in the settings on the right. "
            hint *= "KAGGLE_KERNEL_RUN_TYPE" in os.environ
            raise RuntimeError(f"The course could not be fetched. {{hint}}git says: {{done.stderr}}")
    if home not in sys.path:
        sys.path.insert(0, home)
        os.environ["PYTHONPATH"] = ":".join(filter(None, [home, os.environ.get("PYTHONPATH")]))
    os.chdir(f"{{home}}/{folder}")"""
)


def colab_cell(address: str, folder: str) -> NotebookNode:
    """The cell for a notebook that is in ``folder`` of the repository at ``address``."""
    source = SOURCE.format(address=address, folder=folder)
    return new_code_cell(source, id=TAG, metadata=METADATA)


def is_colab_cell(cell: NotebookNode) -> bool:
    """Whether it is this cell; an older version of it, too."""
    return TAG in cell.metadata.get("tags", ())
