"""What a test cell displayed becomes points and a reason; nbgrader's own rule then reads the points."""

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from nbgrader.utils import determine_grade

from autograder.judging.outcome import MIME
from autograder.nbgrader_plugin.pages import REMARK, HideTests
from autograder.nbgrader_plugin.points import ReadVerdicts


def cell(name: str, source: str, *outputs: NotebookNode, points: float | None = None) -> NotebookNode:
    """A solution cell, or with points, a test cell."""
    data = {"grade_id": name, "solution": points is None, "grade": points is not None, "locked": True}
    if points is not None:
        data["points"] = points
    return new_code_cell(source, outputs=list(outputs), metadata={"nbgrader": data})


result = lambda text: new_output("execute_result", {"text/plain": text})
card = lambda **data: new_output("display_data", {"text/plain": "a card", MIME: data})


def error(name: str, message: str) -> NotebookNode:
    return new_output("error", ename=name, evalue=message, traceback=[message])


def test_hidden_lines_are_taken_out_of_every_output() -> None:
    hidden = 'check(pad, on=[1, "two"])'
    region = f"### BEGIN HIDDEN TESTS\n    {hidden}\nimport torch\n### END HIDDEN TESTS"
    coloured = hidden.replace("(", "\x1b[39m(\x1b[0m")
    page = new_output("display_data", {"text/html": "<b>check(pad, on=[1, &quot;two&quot;])</b>"})
    outputs = [error("Error", hidden), new_output("stream", text=coloured), page]
    first = new_code_cell("look()", outputs=outputs)
    second = new_code_cell("import torch", outputs=[new_output("stream", text="import torch")])
    source = f"# A hidden test.\nimport torch\n{region}"
    test = cell("pad_hidden", source, error("Error", hidden), result("2"), points=2)
    HideTests().preprocess(new_notebook(cells=[first, second, test]), {})
    assert test.source == f"# A hidden test.\nimport torch\n{REMARK}"
    assert [output.output_type for output in test.outputs] == ["execute_result"]
    shown = first.outputs[0]
    assert [shown.evalue, *shown.traceback, first.outputs[1].text] == ["(hidden test)"] * 3
    assert first.outputs[2].data["text/html"] == "<b>(hidden test)</b>"
    assert second.outputs[0].text == "import torch"  # no secret: it stands in a visible cell


LAPS: dict[str, object] = {"laps": [{"device": "cpu"}]}
CHECKED: dict[str, object] = {"outcome": "passed", "points": 1, "right": True}
WRONG: dict[str, object] = {"outcome": "failed", "points": 0, "right": False}


def points_of(*tests: tuple[str, str, tuple[NotebookNode, ...]]) -> list[float]:
    """The points, out of 3 each, of tests: their names, sources and outputs."""
    cells = [cell("pad", ""), cell("crop", "")]
    cells += [cell(name, source, *outputs, points=3) for name, source, outputs in tests]
    notebook = new_notebook(cells=cells)
    ReadVerdicts().preprocess(notebook, {})
    return [determine_grade(test)[0] for test in notebook.cells[2:]]


def race(name: str, points: str = "3", **data: object) -> tuple[str, str, tuple[NotebookNode, ...]]:
    shown = card(**{"outcome": "passed", "points": float(points)} | LAPS | data)
    return name, "race(f)", (shown, result(points))


def checked(name: str, data: dict[str, object]) -> tuple[str, str, tuple[NotebookNode, ...]]:
    return name, "check(f)", (card(**data), result(str(data["points"])))


def test_a_race_counts_only_where_the_checks_of_its_exercise_found_the_answer_right() -> None:
    """Before it or after it, whatever their names and the race's card: a race without its device, too."""
    for one in (race("pad_race"), race("pad_race", outcome="not available", laps=[])):
        for name in ("pad_first", "pad_zz"):
            for tests in [one, checked(name, WRONG)], [checked(name, WRONG), one]:
                assert points_of(*tests) == [0, 0]
        assert points_of(one, checked("pad_check", CHECKED)) == [3, 1]


def test_what_costs_a_race_its_points() -> None:
    for test, points in [
        (checked("pad_check", WRONG | {"outcome": "not attempted"}), 0),
        (("pad_check", "check(f)", (error("TimeLimit", "too long"),)), 0),
        (("pad_check", "check(f)", (card(**CHECKED), card(**WRONG), result("0"))), 0),
        (("pad_check", "my_own_test()", (result("0.5"),)), 3),
        (checked("pad_check", WRONG | {"right": True}), 3),  # right, with too high costs
        (checked("pad_check", WRONG | {"outcome": "undecided", "right": True}), 3),
        (checked("crop_check", WRONG), 3),
        (("pad_race_2", "race(f)", (card(outcome="undecided", points=0), result("0"))), 3),
    ]:
        assert points_of(race("pad_race"), test)[0] == points, test


def test_the_card_says_which_test_found_a_wrong_answer() -> None:
    cells = [cell("pad", ""), cell("pad_race", "race(f)", *race("pad_race")[2], points=3)]
    cells.append(cell("pad_hidden", "check(f)", card(**WRONG), result("0"), points=3))
    ReadVerdicts().preprocess(new_notebook(cells=cells), {})
    cards = [output.data[MIME] for output in cells[1].outputs if MIME in output.data]
    assert [(shown["outcome"], "`pad_hidden`" in shown["message"]) for shown in cards] == [("failed", True)]
