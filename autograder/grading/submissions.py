"""What a student handed in, made safe to grade: broken notebooks, files that are none, and missing ones.

Plain nbgrader drops the grade of a student whose notebook it cannot read, and passes over a folder without
its notebook. Here both are graded: 0 points, and a feedback page that says what was wrong.
"""

from __future__ import annotations

import fnmatch
import glob
import json
import os
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde
from nbgrader.converters.base import BaseConverter

NEW_CELL = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


class UnreadableNotebook(Exception):
    """A submitted notebook that cannot be graded; the message is written for the student."""


def read_notebook(path: Path) -> NotebookNode:
    """The notebook at ``path``, its cells rebuilt so that the steps after it meet no malformed ones.

    Raises UnreadableNotebook where there is no notebook to be had.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        message = f"The submission has no file `{path.name}`."
        if others := ", ".join(f"`{other.name}`" for other in sorted(path.parent.glob("*.ipynb"))):
            message += f" It has {others}. Was the notebook renamed? It must keep its name."
        raise UnreadableNotebook(message) from None
    except (UnicodeDecodeError, OSError) as error:
        raise UnreadableNotebook(f"The file `{path.name}` cannot be read as text: {error}.") from None
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableNotebook(not_json(path.name, text, error)) from None
    except RecursionError:
        raise UnreadableNotebook(f"The file `{path.name}` is nested too deeply to be a notebook.") from None
    try:
        notebook = nbformat.reads(text, as_version=4)
        cells = [rebuilt(cell) for cell in notebook.cells]
    except Exception as error:
        raise UnreadableNotebook(
            f"The file `{path.name}` is valid JSON, but it is not a Jupyter notebook "
            f"({type(error).__name__}: {error})."
        ) from None
    metadata = notebook.get("metadata", {})
    fresh = new_notebook()
    fresh.cells = cells
    fresh.metadata.update({key: metadata[key] for key in ("kernelspec", "autograder") if key in metadata})
    return valid(fresh)


def rebuilt(cell: NotebookNode) -> NotebookNode:
    """A new cell with the same type, source and outputs; of the metadata it keeps what nbgrader needs."""
    # A lone surrogate is legal in JSON, but no process accepts it as text.
    source = cell["source"].encode("utf-8", "replace").decode()
    metadata = cell.get("metadata", {})
    kept = {"nbgrader": metadata["nbgrader"]} if "nbgrader" in metadata else {}
    new = NEW_CELL[cell["cell_type"]](source, metadata=kept)
    if new.cell_type == "code":
        new.outputs = cell.get("outputs", [])
    elif "attachments" in cell:
        new.attachments = cell["attachments"]
    return new


def valid(notebook: NotebookNode) -> NotebookNode:
    """The notebook, without its outputs, pictures and metadata if those break the rules of the format."""
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError:
        notebook.metadata = NotebookNode()
        for cell in notebook.cells:
            cell.pop("attachments", None)
            if cell.cell_type == "code":
                cell.outputs = []
    return notebook


def not_json(name: str, text: str, error: json.JSONDecodeError) -> str:
    """What is wrong with a file that is not JSON, where, and what it may be instead."""
    if not text.strip():
        return f"The file `{name}` is empty."
    line = text.splitlines()[error.lineno - 1 :][:1]
    found = line[0].strip()[:60] if line else "the end of the file"
    message = (
        f"The file `{name}` is not a Jupyter notebook: it is not valid JSON. "
        f"The first mistake is in line {error.lineno}, column {error.colno}: {error.msg}. "
        f"There stands: `{found}`. "
    )
    if text.lstrip().startswith("<"):
        return message + "It looks like a web page. Download the notebook file itself."
    if any(mark in text for mark in ("<<<<<<<", ">>>>>>>")):
        return message + "It has merge conflict marks from Git (`<<<<<<<`). Resolve the conflict first."
    return message + "It may have been cut off or edited by hand."


class SubmissionExporter(NotebookExporter):
    """Reads a submission; in place of one that cannot be read it puts a page that says why.

    RestoreCells then adds the test cells, and ReadVerdicts gives each of them 0 points.
    """

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[str, dict[str, Any]]:
        """Convert the notebook in a file, as nbconvert's method of this name does."""
        path = Path(filename)
        try:
            notebook = read_notebook(path)
        except UnreadableNotebook as error:
            self.log.warning("%s: %s", path, error)
            notebook = explanation(str(error))
        resources = ResourcesDict() if resources is None else resources
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        return self.from_notebook_node(notebook, resources=resources, **kw)


def explanation(problem: str) -> NotebookNode:
    """A notebook that stands in for one that cannot be read, and says why it counts 0 points."""
    text = (
        "# This submission could not be graded\n\n"
        f"{problem}\n\n"
        "So every exercise counts **0 points**. The file itself was left as it was handed in.\n\n"
        "**What to do:** open the notebook in JupyterLab, run all cells, save it under its given name, and "
        "hand it in again. If it does not open there, get a new copy of the exercise and paste your "
        "solutions into it."
    )
    return new_notebook(cells=[new_markdown_cell(text)], metadata={"autograder": {"problem": problem}})


def problem_of(notebook: NotebookNode) -> str | None:
    """Why the submission could not be read, if it could not."""
    return notebook.metadata.get("autograder", {}).get("problem")


def grade_missing_notebooks() -> None:
    """Let ``nbgrader autograde`` see notebooks that are not there.

    nbgrader lists what to grade in ``Autograde.init_notebooks``, from the files it finds. It has no setting
    and no hook there, and its commands and its formgrader create ``Autograde`` by name, so this one method is
    replaced.
    """
    Autograde.init_notebooks = init_notebooks


def init_notebooks(self: Autograde) -> None:
    """For each submission folder: the notebooks it has, and those that the assignment asks for."""
    wanted = f"{self.coursedir.notebook_id}.ipynb"
    with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
        try:
            assignment = gradebook.find_assignment(self.coursedir.assignment_id)
            expected = fnmatch.filter((f"{notebook.name}.ipynb" for notebook in assignment.notebooks), wanted)
        except MissingEntry:
            expected = []
    self.notebooks = []
    self.assignments = {}
    for folder in glob.glob(self._format_source(self.coursedir.assignment_id, self.coursedir.student_id)):
        found = glob.glob(os.path.join(folder, wanted))
        notebooks = {*found, *(os.path.join(folder, name) for name in expected)}
        if notebooks:
            self.assignments[folder] = sorted(notebooks)
    if not self.assignments:
        BaseConverter.init_notebooks(self)  # raises, with nbgrader's own advice
