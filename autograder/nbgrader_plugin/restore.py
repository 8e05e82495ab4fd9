"""Puts back what students must not change: the locked cells, the order of all cells of the assignment, and
nbgrader's notes on each cell. And it says which version of the assignment that is."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from itertools import takewhile
from typing import Any
from uuid import uuid4

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry, Notebook, SourceCell
from nbgrader.preprocessors import NbGraderPreprocessor, SaveCells

from ..roles import defined_names, is_test, nbgrader_data
from .patches import remove_hidden_tests
from .reading import digest
from .submissions import problem_of

KEPT = ("grade", "solution", "task", "locked")  # a cell with one of these is in the gradebook
MOST_CELLS = 100_000  # in one notebook
CHANGED = "# This cell differed from the assignment's, which was put back before grading.\n"
DELETED = "# This cell had been deleted. It was put back before grading.\n"


@dataclass(frozen=True)
class Original:
    """A cell as the gradebook keeps it, and its source as students got it, without hidden tests."""

    cell: NotebookNode
    released: str


Originals = Mapping[str, Original]  # by grade_id, in the order in which they were released


class SaveCellsInOrder(SaveCells):
    """nbgrader's SaveCells, which also keeps the order of the cells.

    The gradebook has no column for it, and a database may give rows in any order; so it is in their ids.
    Before it changes what somebody was graded by, it says what that means for them.
    """

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        about = resources["nbgrader"]
        if warning := what_changes(nb, about["assignment"], about["notebook"], about["db_url"]):
            self.log.warning("%s", warning)
        nb, resources = super().preprocess(nb, resources)
        order = [nbgrader_data(cell).get("grade_id") for cell in nb.cells]
        with Gradebook(self.db_url) as gradebook:
            for cell in gradebook.find_notebook(self.notebook_id, self.assignment_id).source_cells:
                cell.id = f"{order.index(cell.name):08x}{uuid4().hex[8:]}"
            gradebook.db.commit()
        return nb, resources


def what_changes(nb: NotebookNode, assignment: str, notebook: str, db_url: str) -> str:
    """A sentence for the instructor if this notebook has other tests or points than some were graded by."""
    with Gradebook(db_url) as gradebook:
        try:
            known = gradebook.find_notebook(notebook, assignment)
        except MissingEntry:
            return ""
        graded = len(known.submissions)
        old, new = _deciding(original_cells(known).values()), _deciding(nb.cells)
    if not graded or list(old.items()) == list(new.items()):
        return ""
    if came_or_went := sorted(old.keys() ^ new.keys()):
        cells = ", ".join(f"{name} ({'new' if name in new else 'gone'})" for name in came_or_went)
        what = f"There are submissions of {assignment}, so nbgrader refuses to add or remove cells"
        return f"{what}: {cells}. The gradebook stays as it is."
    changed = []
    for name, (code, points) in new.items():
        old_code, old_points = old[name]
        how = [f"{old_points or 0:g} points → {points or 0:g} points"] if points != old_points else []
        how += ["other code"] if code != old_code else []
        changed += [f"{name} ({', '.join(how)})"] if how else []
    changes = f"What they were graded by changes: {', '.join(changed) or 'the order of the cells'}."
    then = f"They keep their grades until the next `python -m autograder grade {assignment}`"
    again = "which grades them all again, and says so first. Points given by hand stay."
    return f"Submissions of {assignment} that are graded already: {graded}. {changes} {then}, {again}"


def version_of_tests(cells: Iterable[NotebookNode]) -> str:
    """A short text that is another one as soon as what decides points is: the code of tests and given cells,
    their order, the points, the names that answers must define. Texts decide nothing.
    """
    return digest(json.dumps(list(_deciding(cells).items())).encode())


def _deciding(cells: Iterable[NotebookNode]) -> dict[str, tuple[str, float | None]]:
    """The cells that decide points, by name: their code, and their points if they give any."""
    found: dict[str, tuple[str, float | None]] = {}
    for cell in cells:
        data = nbgrader_data(cell)
        if not any(data.get(kind) for kind in KEPT):
            continue
        points = float(data["points"]) if data.get("grade") or data.get("task") else None
        code = cell.source if cell.cell_type == "code" else ""
        if code and data.get("solution"):  # students write the rest of it
            code = " ".join(sorted(defined_names(code)))
        if code or points is not None:
            found[data["grade_id"]] = code, points
    return found


class RestoreCells(NbGraderPreprocessor):
    """Makes the assignment's cells what the gradebook says, wherever the student's notebook differs.

    It stands for nbgrader's DeduplicateIds and OverwriteCells. Those trust the metadata in the submission,
    the order of its cells, and the neighbours of a deleted one. Each instance asks the gradebook once for
    the cells of a notebook. The notebook notes what was put back, and the version of the tests.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._known = cache(self.originals)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        names = resources["nbgrader"]
        originals = self._known(names["db_url"], names["assignment"], names["notebook"])
        remarks = restore(nb, originals)
        for remark in remarks:
            self.log.info(remark)
        nb.metadata.autograder.update(
            put_back=[] if problem_of(nb) else remarks,
            tests=version_of_tests(original.cell for original in originals.values()),
        )
        return nb, resources

    def originals(self, db_url: str, assignment: str, notebook: str) -> Originals:
        with Gradebook(db_url) as gradebook:
            cells = original_cells(gradebook.find_notebook(notebook, assignment))
        found = {}
        for name, cell in cells.items():
            remove_hidden_tests(released := NotebookNode(source=cell.source), self)
            found[name] = Original(cell, released.source)
        return found


def restore(nb: NotebookNode, originals: Originals) -> list[str]:
    """Put the original cells into a notebook, in order; gives a remark for each that was changed or moved.

    Where a student copied a cell, one counts: one that is in order, or else the last. All others are cells of
    the student's own. These stay where they are among the cells that were in order, and those before an
    answer that was moved go along with it. The notebook notes each exercise's released names.
    """
    remarks: list[str] = []
    in_order, moved = _that_count(nb.cells, list(originals))
    placed: dict[str, list[NotebookNode]] = {}  # a cell, after what goes along with it
    gaps: dict[str | None, list[NotebookNode]] = {None: []}  # the student's cells after each in order
    last, own = None, list[NotebookNode]()
    for index, cell in enumerate(nb.cells):
        name = in_order.get(index) or moved.get(index)
        if name is None:
            cell.metadata.pop("nbgrader", None)
            own.append(cell)
            continue
        placed[name] = [_restored(cell, originals[name], remarks)]
        if index in in_order:
            gaps[last] += own
            gaps[name], last, own = [], name, []
            continue
        remarks.append(f"Cell {name} had been moved; putting it back")
        if not originals[name].cell.metadata.nbgrader.locked:
            placed[name], own = [*own, *placed[name]], []
    gaps[last] += own
    for name, original in originals.items():
        if name not in placed and (cells := _deleted(original, marks=not problem_of(nb))):
            remarks.append(f"Cell {name} had been deleted; restoring it")
            placed[name] = cells
    nb.cells = list(_joined(gaps, placed, originals))
    names = {
        name: sorted(defined_names(original.released)) if original.cell.cell_type == "code" else []
        for name, original in originals.items()
        if original.cell.metadata.nbgrader.solution
    }
    nb.metadata.setdefault("autograder", NotebookNode())["names"] = names
    return remarks


def _that_count(cells: Sequence[NotebookNode], order: Sequence[str]) -> tuple[dict[int, str], dict[int, str]]:
    """The cells that count, index → grade_id: those that are in order, and those that are not."""
    found = [
        (index, name)
        for index, cell in enumerate(cells)
        if isinstance(name := nbgrader_data(cell).get("grade_id"), str) and name in order
    ]
    matcher = SequenceMatcher(None, [name for _, name in found], order, autojunk=False)
    in_order = dict(pair for a, _, size in matcher.get_matching_blocks() for pair in found[a : a + size])
    others = {name: index for index, name in found if name not in in_order.values()}
    return in_order, {index: name for name, index in others.items()}


def _restored(cell: NotebookNode, original: Original, remarks: list[str]) -> NotebookNode:
    """The original of a locked cell; the student's answer with the original's metadata for any other."""
    data = original.cell.metadata.nbgrader
    placed = deepcopy(original.cell)
    if not data.locked:
        placed.source = cell.source
    elif cell.source.strip() != original.released.strip():
        remarks.append(f"Cell {data.grade_id} differed from the assignment's; restoring it")
        mark(placed, CHANGED)
    return placed


def _deleted(original: Original, *, marks: bool) -> list[NotebookNode]:
    """What comes back of a cell that had been deleted: nothing of an answer."""
    data = original.cell.metadata.nbgrader
    if not (data.locked or data.grade or data.task):
        return []
    cell = deepcopy(original.cell)
    if marks and data.locked:  # of others, nbgrader tells by the source whether an answer was given
        mark(cell, DELETED)
    return [cell]


def _joined(
    gaps: Mapping[str | None, list[NotebookNode]],
    placed: Mapping[str, list[NotebookNode]],
    originals: Originals,
) -> Iterator[NotebookNode]:
    before: str | None = None
    put_back: list[str] = []
    for name in (*originals, None):
        if name is None or name in gaps:
            own = gaps[before]
            code = [place for place, cell in enumerate(own) if cell.cell_type == "code"]
            # Directly after the cell before; at the top, after its heading. Tests, and what comes after
            # them, only when the student's code there has run.
            start = 0 if before else min(code, default=len(own))
            end = max((place + 1 for place in code), default=start)
            first = list(takewhile(lambda other: not is_test(originals[other].cell), put_back))
            yield from own[:start]
            yield from (cell for other in first for cell in placed[other])
            yield from own[start:end]
            yield from (cell for other in put_back[len(first) :] for cell in placed[other])
            yield from own[end:]
            yield from placed[name] if name else []
            before, put_back = name, []
        elif name in placed:
            put_back.append(name)


def original_cells(notebook: Notebook) -> dict[str, NotebookNode]:
    """The cells that nbgrader keeps in the gradebook, by grade_id, in the order of the assignment."""
    points = {cell.name: cell.max_score for cell in (*notebook.grade_cells, *notebook.task_cells)}
    tasks = {cell.name for cell in notebook.task_cells}
    solutions = {cell.name for cell in notebook.solution_cells}
    cells = {}
    sources: list[SourceCell] = notebook.source_cells
    # SaveCellsInOrder keeps the order in the ids; where nbgrader made random ones, it is the database's.
    if all(int(source.id[:8], 16) < MOST_CELLS for source in sources):
        sources = sorted(sources, key=lambda source: source.id)
    for source in sources:
        data = {
            "grade_id": source.name,
            "grade": source.name in points and source.name not in tasks,
            "solution": source.name in solutions,
            "task": source.name in tasks,
            "locked": source.locked,
            "cell_type": source.cell_type,
            "checksum": source.checksum,
            "schema_version": 3,
        }
        if source.name in points:
            data["points"] = points[source.name]
        new_cell = getattr(nbformat.v4, f"new_{source.cell_type}_cell")
        cells[source.name] = new_cell(source.source, metadata={"nbgrader": data})
    return cells


def mark(cell: NotebookNode, remark: str) -> None:
    if cell.cell_type == "code":
        cell.source = remark + cell.source
