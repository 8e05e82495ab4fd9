"""What plain `nbgrader autograde` and `generate_feedback` make of right, wrong and broken submissions."""

import shutil

import pytest
from grading_class import a_class, command, configure, grades
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.api import Gradebook
from pretend_class import FULL, TIME_LIMIT, Graded, api, find, hand_in, submissions

from autograder.nbgrader_plugin.execute import RunEveryCell

pytestmark = [pytest.mark.slow, pytest.mark.attack]


@pytest.fixture(scope="module")
def traps(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """All kinds of bad input, one student each, graded in one run."""
    course = handed_in(tmp_path_factory.mktemp("course"))
    course.nbgrader("autograde", "traps", f"--RunEveryCell.timeout={TIME_LIMIT}")
    course.nbgrader("generate_feedback", "traps")
    return Graded(course, "traps")


def handed_in(folder):
    course = a_class(folder, students=())
    for student, content in submissions(course.released("traps")).items():
        hand_in(course, "traps", student, content)
    return course


def only(*exercises: str) -> dict[str, float]:
    """Full points in these exercises, none in the others."""
    return {test: worth * test.startswith(exercises) for test, worth in FULL.items()}


def test_right_answers_get_full_points_and_the_released_notebook_none(traps: Graded) -> None:
    contents = submissions(traps.course.released("traps"))
    assert traps.points.keys() == contents.keys() and grades(traps.course)["right"] == FULL
    assert grades(traps.course)["unattempted"] == only()
    assert "not attempted: there is no solution here yet" in traps.page("unattempted")
    assert traps.submitted("cut_off").read_bytes() == contents["cut_off"], "it is left alone"
    released = traps.course.folder / "exercises" / "traps"
    assert [path.name for path in released.iterdir()] == ["traps.ipynb"]


def test_a_result_that_says_no_points_counts_nothing(traps: Graded) -> None:
    page = traps.page("right")
    for test, reason in (
        ("odd_silent", "The test gave no result, so it counts 0."),
        ("odd_text", "`'full marks'`, which is not a number of points"),
        ("odd_over", "The test returned `7.5`, but it can give from 0 to 1 points."),
        ("odd_negative", "The test returned `-1`, but it can give from 0 to 1 points."),
        ("odd_nan", "The test returned `nan`, but it can give from 0 to 1 points."),
        ("odd_card", "The test returned `1`, but its card says 0 points"),
    ):
        assert traps.points["right"][test] == 0 and reason in page


def test_an_undecided_race_is_marked_for_the_instructor(traps: Graded) -> None:
    with Gradebook(traps.course.db_url) as gradebook:
        undecided = gradebook.find_grade("odd_undecided", "traps", "traps", "right")
        decided = gradebook.find_grade("double_check", "traps", "traps", "right")
        assert (undecided.score, undecided.needs_manual_grade) == (0.5, True)
        assert (decided.score, decided.needs_manual_grade) == (1, False)


def test_an_endless_loop_costs_one_exercise(traps: Graded) -> None:
    assert grades(traps.course)["loops"] == only("negate")
    page = traps.page("loops")
    assert page.count(f"This cell ran longer than {TIME_LIMIT} seconds, the time limit") == 3
    assert "Not run, because the test `double_check` above did not end by itself." in page


def test_a_missing_name_is_explained(traps: Graded) -> None:
    assert grades(traps.course)["mistakes"] == only()
    page = traps.page("mistakes")
    for name in ("double", "square", "negate"):
        assert page.count(f"The test uses `{name}`, but nothing of this name was defined before it.") == 3
    assert "First mend the cell with your solution: SyntaxError: expected ':' (line 1)" in page
    assert "NameError" not in page


def test_hidden_tests_stay_hidden_but_from_the_instructor(traps: Graded) -> None:
    for student in traps.points:
        for secret in ("secret_cases", "987654321", "123456789", "192837465", "HIDDEN TESTS"):
            assert secret not in traps.html(student), (student, secret)
        assert "Traceback" not in traps.page(student)
    page = traps.page("curious")
    assert "end of history" in page and "RuntimeError: out" in page
    assert grades(traps.course)["curious"] == only("double", "negate")
    cell = find(traps.autograded("mistakes"), "square_hidden")
    assert "123456789" in cell.source
    assert any(output.output_type == "error" for output in cell.outputs)


def test_the_command_gives_the_points_that_nbgrader_gives(traps: Graded, tmp_path) -> None:
    course = handed_in(tmp_path)
    configure(course, f"c.RunEveryCell.timeout = {TIME_LIMIT}")
    done = command(course, "grade", "traps")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(traps.points)} graded, 0 skipped (graded before), 0 failed" in done.stdout
    assert f" of {len(traps.points)} submissions" in done.stderr
    assert course.points("traps") == traps.points
    again = command(course, "grade", "traps")
    assert again.returncode == 0 and "Nothing was left to do" in again.stdout


def test_the_formgrader_grades_an_unreadable_submission(traps: Graded) -> None:
    shutil.rmtree(traps.course.folder / "autograded" / "cut_off")
    result = api(traps.course).autograde("traps", "cut_off")
    assert result["success"], result
    assert "could not be graded" in traps.autograded("cut_off").cells[0].source
    assert set(traps.course.points("traps")["cut_off"].values()) == {0}


# The limits on one notebook as a whole, and what a cell shows.


def run(*sources: str, **limits: float):
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    RunEveryCell(**limits).preprocess(notebook, {})
    return notebook.cells


def test_fresh_processes_are_limited() -> None:
    cells = run("import os", "os._exit(1)", "os.getpid()", "os._exit(1)", "1", max_restarts=1)
    assert "This cell ended the Python process" in cells[1].outputs[0].evalue
    assert cells[2].outputs[0].output_type == "execute_result"  # the import ran again
    assert cells[4].outputs[0].ename == "NotRun"
    assert "started again 1 times" in cells[4].outputs[0].evalue
    deadly = "import os, time; time.time() > LATER and os._exit(1)"  # it only dies when it is run again
    cells = run("import time; LATER = time.time() + 0.3; x = 1", deadly, "time.sleep(0.4); os._exit(1)", "x")
    assert cells[3].outputs[0].data["text/plain"] == "1"


def test_the_time_for_a_notebook_is_limited() -> None:
    cells = run("1", "while True: pass", "2", timeout=60, notebook_timeout=2)
    assert [output.output_type for output in cells[0].outputs] == ["execute_result"]
    assert cells[1].outputs[-1].ename == "TimeLimit"
    assert cells[2].outputs[0].evalue == "Not run: the notebook had used up its 2 seconds."


def test_text_from_everywhere_is_kept_and_pictures_too() -> None:
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"
    cells = run("import os, sys\nprint('a')\nprint('b', file=sys.stderr)\nos.write(1, b'c');", plot, "1 / 0")
    said = [(output.name, output.text) for output in cells[0].outputs]
    assert said == [("stdout", "a\n"), ("stderr", "b\n"), ("stdout", "c")]
    assert any("image/png" in output.get("data", {}) for output in cells[1].outputs)
    assert cells[2].outputs[0].ename == "ZeroDivisionError"
