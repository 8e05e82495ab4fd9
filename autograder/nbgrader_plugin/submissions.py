"""What a student handed in, made safe to grade: broken notebooks, files that are none, and missing ones.

Plain nbgrader drops the grade of a student whose notebook it cannot read, and passes over a folder without
its notebook. Here both are graded: 0 points, and a feedback page that says what was wrong.
"""

from __future__ import annotations

import fnmatch
import glob
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import nbformat
from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde
from nbgrader.utils import rmtree

from . import patches

# What a notebook may have, with its pictures, and in its cells alone.
MOST_BYTES, MOST_SOURCE = 25_000_000, 2_000_000
NEW_CELL = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


class UnreadableNotebook(Exception):
    """A submitted notebook that cannot be graded; the message is written for the student."""


def read_notebook(path: Path, ours: bool = False) -> NotebookNode:
    """The notebook at ``path``, its cells rebuilt so that the steps after it meet no malformed ones.

    What grading notes about a notebook is kept only where grading wrote it (``ours``). Raises
    UnreadableNotebook where there is no notebook to be had.
    """
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise UnreadableNotebook(
                f"The file `{path.name}` has {size / 1e6:.0f} MB; at most {MOST_BYTES / 1e6:.0f} MB can be "
                "graded. Clear its outputs and save it again."
            )
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
    if sum(len(cell.source) for cell in cells) > MOST_SOURCE:
        raise UnreadableNotebook(
            f"The cells of `{path.name}` hold more than {MOST_SOURCE / 1e6:.0f} MB of text. Data belongs "
            "into files of its own."
        )
    metadata = notebook.get("metadata", {})
    fresh = new_notebook()
    fresh.cells = cells
    kept = ("kernelspec", "autograder") if ours else ("kernelspec",)
    fresh.metadata.update({key: metadata[key] for key in kept if key in metadata})
    return valid(fresh)


def rebuilt(cell: Mapping[str, Any]) -> NotebookNode:
    """A new cell with the same type, source and outputs; of the metadata it keeps what nbgrader needs.

    nbformat's own functions for new cells check each against the schema, which takes longer than all the
    rest; ``valid`` checks the whole notebook.
    """
    kind = cell["cell_type"]
    if kind not in NEW_CELL:
        raise ValueError(f"there is no cell type {kind!r}")
    # A lone surrogate is legal in JSON, but no process accepts it as text.
    source = cell["source"].encode("utf-8", "replace").decode()
    metadata = cell.get("metadata", {})
    kept = {"nbgrader": metadata["nbgrader"]} if "nbgrader" in metadata else {}
    new = {"id": uuid4().hex[:8], "cell_type": kind, "metadata": kept, "source": source}
    if kind == "code":
        new |= {"execution_count": None, "outputs": cell.get("outputs", [])}
    elif "attachments" in cell:
        new["attachments"] = cell["attachments"]
    return nbformat.from_dict(new)


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
    ) -> tuple[Any, dict[str, Any]]:
        """Convert the notebook in a file to text, as nbconvert's method of this name does."""
        path = Path(filename)
        notebook = read_or_explain(path, self.log, ours=patches.reads_its_own(self.parent))
        resources = ResourcesDict() if resources is None else resources
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        return self.from_notebook_node(notebook, resources=resources, **kw)


def read_or_explain(path: Path, log: logging.Logger, ours: bool = False) -> NotebookNode:
    """The notebook at ``path``; in place of one that cannot be read, a page that says why."""
    try:
        return read_notebook(path, ours)
    except UnreadableNotebook as error:
        log.warning("%s: %s", path, error)
        return explanation(str(error))


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


def init_notebooks(self: Autograde) -> None:
    """For each submission folder: the notebooks it has, and those that the assignment asks for.

    It stands for nbgrader's own method, which passes over notebooks that are not there. What an earlier run
    left unfinished is taken away; nbgrader would pass over it, too.
    """
    wanted = f"{self.coursedir.notebook_id}.ipynb"
    with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
        try:
            assignment = gradebook.find_assignment(self.coursedir.assignment_id)
            expected = fnmatch.filter((f"{notebook.name}.ipynb" for notebook in assignment.notebooks), wanted)
        except MissingEntry:
            expected = []
    self.notebooks = []
    self.assignments = {}
    for folder in patches.submitted_folders(self):
        if not remove_links(self, Path(folder)):
            continue
        found = glob.glob(os.path.join(folder, wanted))
        notebooks = {*found, *(os.path.join(folder, name) for name in expected)}
        if notebooks:
            self.assignments[folder] = sorted(notebooks)
    if not self.assignments:
        patches.no_notebooks(self)
    if expected and self.coursedir.notebook_id == "*":
        with only_one(Path(self.coursedir.root)) as alone:
            if alone:  # otherwise somebody may just be working on them
                clear_unfinished(self, [name.removesuffix(".ipynb") for name in expected])


def remove_links(self: Autograde, folder: Path) -> bool:
    """Take symbolic links out of a submission: grading would read, and hand out, what they point to.

    Gives whether anything is left.
    """
    for path in [folder] if folder.is_symlink() else list(folder.rglob("*")):
        if path.is_symlink():
            self.log.warning("A symbolic link in a submission was removed: %s", path)
            path.unlink()
    return folder.exists()


def clear_unfinished(self: Autograde, expected: list[str]) -> None:
    """Remove the autograded folders of submissions that an earlier run did not grade to the end."""
    for folder in self.assignments:
        graded = patches.autograded_folder(self, *patches.owner(self, folder))
        if graded.exists() and unfinished(graded, expected):
            self.log.warning("Grading was stopped before its end, so it starts again: %s", graded)
            rmtree(str(graded))


def unfinished(folder: Path, notebooks: Iterable[str]) -> bool:
    """Whether an autograded folder lacks a notebook, or one has no mark that it was graded to the end."""
    return not all(_notes(folder / f"{name}.ipynb").get("finished") for name in notebooks)


def _notes(path: Path) -> dict[str, Any]:
    """What grading noted about the notebook at ``path``; nothing where it cannot be read."""
    try:
        notes = json.loads(path.read_text(encoding="utf-8"))["metadata"].get("autograder")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return notes if isinstance(notes, dict) else {}


@contextmanager
def only_one(root: Path) -> Iterator[bool]:
    """Whether nobody else grades the course in ``root``; if so, nobody else can until the block ends."""
    import fcntl  # not on Windows, where only students work

    folder = root / ".grading"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
