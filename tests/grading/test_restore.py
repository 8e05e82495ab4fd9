"""Whatever a submission did to its cells, those of the assignment are put back, in their order."""

import random
from copy import deepcopy

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook

from autograder.nbgrader_plugin.restore import CHANGED, Original, SaveCellsInOrder, original_cells, restore
from autograder.roles import nbgrader_data
from autograder.sandbox import plan

ORDER = [
    ("setup", "given", "from autograder import check"),
    ("a_given", "given", "def a_slow(x): pass"),
    ("a", "answer", "def a(x):\n    raise NotImplementedError"),
    ("a_check", "test", "check(a)"),
    ("a_race", "test", "race(a)"),
    ("b_given", "given", "def b_slow(x): pass"),
    ("b", "answer", "class b:\n    pass\nLIMIT = 3"),
    ("b_check", "test", "check(b)"),
]
NAMES = [name for name, _, _ in ORDER]


def cell(name: str, role: str, source: str) -> NotebookNode:
    data = {"grade_id": name, "cell_type": "code", "task": False, "checksum": "", "schema_version": 3}
    data |= {"grade": role == "test", "solution": role == "answer", "locked": role != "answer"}
    return new_code_cell(source, metadata={"nbgrader": data | {"points": 1} if role == "test" else data})


ORIGINALS = {name: Original(cell(name, role, source), source) for name, role, source in ORDER}


def notebook(*cells: str) -> NotebookNode:
    """A notebook with these cells: the assignment's by their name, or ``name=source``; others are own."""
    made = []
    for text in cells:
        name, _, source = text.partition("=")
        if name in ORIGINALS:
            made.append(deepcopy(ORIGINALS[name].cell))
            made[-1].id = f"cell{len(made)}"
            made[-1].source = source or made[-1].source
        else:
            made.append(new_markdown_cell(text) if text.startswith("#") else new_code_cell(text))
    return new_notebook(cells=made)


def texts(cells) -> list[str]:
    """The cells as ``notebook`` takes them, without sources of the assignment's."""
    return [nbgrader_data(cell).get("grade_id") or cell.source for cell in cells]


def spoil(nb: NotebookNode, draw: random.Random) -> None:
    """Cells shuffled, deleted, copied, renamed, of another kind, with other code."""
    nb.cells.sort(key=lambda each: each.cell_type)
    if draw.randrange(3):
        draw.shuffle(nb.cells)
    for each in list(nb.cells):
        what = draw.randrange(9)
        if what == 0:
            nb.cells.remove(each)
        elif what == 1:
            nb.cells.insert(draw.randrange(len(nb.cells) + 1), deepcopy(each))
        elif what == 2:
            each.metadata["nbgrader"] = {"grade_id": draw.choice([*NAMES, "mine", 7, None])}
        elif what == 3:
            each.cell_type, each.metadata["nbgrader"] = "raw", nbgrader_data(each) | {"locked": False}
        elif what == 4:
            each.source = f"changed {draw.random()}"


def test_the_assignments_cells_are_there_once_unchanged_and_in_order() -> None:
    for seed in range(300):
        nb = notebook(*NAMES, "x0", "x1", "# x2")
        spoil(nb, random.Random(seed))
        before = [each.source for each in nb.cells if not nbgrader_data(each)]
        restore(nb, ORIGINALS)
        found = [each for each in nb.cells if nbgrader_data(each)]
        names = texts(found)
        locked = [name for name in NAMES if ORIGINALS[name].cell.metadata.nbgrader.locked]
        assert names == [name for name in NAMES if name in names or name in locked], seed
        for each, name in zip(found, names, strict=True):
            original = ORIGINALS[name].cell
            assert each.metadata == original.metadata and each.cell_type == "code", seed
            if name in locked:
                assert each.source.split(" before grading.\n")[-1] == original.source, seed
        after = [each.source for each in nb.cells]
        assert all(source in after for source in before), seed  # nothing of the student's own is lost


def test_cells_in_order_stay_where_they_are_and_a_changed_one_is_put_back_and_marked() -> None:
    cells = ["# Title", "x0", "setup", "# A", "a_given", "x1", "a", "x2", "a_check", "x3", "# note", "a_race"]
    cells += ["# B", "b_given", "b", "x4", "b_check", "x5", "# end"]
    nb = notebook(*cells)
    restore(nb, ORIGINALS)
    assert texts(nb.cells) == cells
    nb = notebook("setup=check = print", *NAMES[1:])
    remarks = restore(nb, ORIGINALS)
    assert nb.cells[0].source == CHANGED + ORIGINALS["setup"].cell.source
    assert remarks == ["Cell setup differed from the assignment's; restoring it"]
    nb = notebook(*NAMES[:-1])
    restore(nb, ORIGINALS)
    assert nb.cells[-1].source.startswith("# This cell had been deleted.")


def test_tests_know_the_names_that_their_exercise_was_released_with() -> None:
    nb = notebook(*[name for name in NAMES if name != "a"], "b=def check(): pass\ndef helper(): pass")
    restore(nb, ORIGINALS)
    names = {planned.grade_id: planned.names for planned in plan(nb) if planned.role == "test"}
    assert names == {"a_check": ["a"], "a_race": ["a"], "b_check": ["LIMIT", "b"]}
    assert {planned.exercise for planned in plan(nb)} == {"a", "b", None}


@pytest.mark.slow
def test_the_gradebook_keeps_the_order_also_when_the_assignment_is_made_again(tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'gradebook.db'}"
    resources = {"nbgrader": {"notebook": "n", "assignment": "h", "db_url": url}}
    with Gradebook(url) as gradebook:
        gradebook.add_assignment("h")
    for order in (NAMES, [*NAMES[5:], *NAMES[:5]]):
        SaveCellsInOrder().preprocess(notebook("# Title", *order), resources)
        with Gradebook(url) as gradebook:
            assert list(original_cells(gradebook.find_notebook("n", "h"))) == order
            gradebook.update_or_create_student("s")
            gradebook.update_or_create_submission("h", "s")  # from now on, nbgrader changes the rows
