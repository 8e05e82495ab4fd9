"""A grade knows what it is for: tests, points, files and their time. What changed is graded again."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from grading_class import STUDENTS, autograded, decide, due, gradebook, grades, handed_in, nbgrader
from nbformat import NotebookNode
from nbgrader.apps import GenerateAssignmentApp
from pretend_class import FULL, answered, delete, find
from pretend_pools import Instant, after, stop
from test_report import Text

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading.class_report import page
from autograder.class_grading.course import Course
from autograder.class_grading.engine import Summary, grade, tell
from autograder.class_grading.results import read_results

pytestmark = pytest.mark.slow  # nbgrader's own commands, or a gradebook for each test
ALL = sorted(STUDENTS)


def run(**options: object) -> tuple[Summary, str]:
    """A run of the grade command, and all that it says."""
    said: list[str] = []
    with Course("traps") as opened, opened.locked():
        summary = grade(opened, connect=Instant(), say=said.append, **options)
        return summary, "\n".join([*said, tell(opened, summary)])


def mend(name: str, source: str) -> None:
    """Change the code of a cell in the gradebook, as `nbgrader generate_assignment` does."""
    with gradebook() as opened:
        opened.update_or_create_source_cell(name, "traps", "traps", source=source)


def report() -> str:
    with Course("traps") as opened:
        return Text(page(read_results(opened))).text


def test_other_tests_are_run_by_the_plain_command_also_if_it_was_stopped(course: ScratchCourse) -> None:
    run()
    mend("square_hidden", "test(square, {5: 25}, points=2)")
    assert "To be graded again, because the tests or points changed." in report()
    with pytest.raises(KeyboardInterrupt):
        run(between=after(2, stop))
    first = json.loads(Path(".grading/traps.json").read_text())["graded"]
    assert len(first) == 2
    summary, said = run()
    assert sorted([*first, *summary.graded]) == ALL
    before, afterwards = said.split("4 graded", 1)
    assert "The tests or points of traps changed since submissions were graded (4): these are" in before
    assert "points given by hand stay" in before
    assert "4 of them graded again, because the tests or points changed" in afterwards
    assert "{5: 25}" in autograded("ada").read_text()
    assert run()[0].graded == []


@pytest.mark.parametrize("name", ["setup", "square"])
def test_a_given_cell_and_the_names_asked_for_count_too(course: ScratchCourse, name: str) -> None:
    run()
    mend("square", 'def square(x):\n    """Its square."""\n    raise NotImplementedError("Not yet.")')
    assert run()[0].graded == [], "that decides no points"
    mend(name, "def squared(x):\n    raise NotImplementedError")
    assert sorted(run()[0].graded) == ALL


def test_force_goes_on_where_it_was_stopped_and_for_others_begins_anew(course: ScratchCourse) -> None:
    run()
    with pytest.raises(KeyboardInterrupt):
        run(force=True, between=after(2, stop))
    first = json.loads(Path(".grading/traps.json").read_text())["graded"]
    summary, said = run(force=True)
    assert len(first) == 2 and sorted([*first, *summary.graded]) == ALL
    assert "--force goes on where it was stopped: begun at " in said and "2 are done." in said
    assert "4 of them graded again, because --force was given" in said
    with pytest.raises(KeyboardInterrupt):
        run(force=True, between=after(6, stop))
    assert run(force=True, students=["ada"])[0].graded == ["ada"]


def test_a_replaced_file_is_seen_without_an_exchange(course: ScratchCourse) -> None:
    """Also where neither the old one nor the new one can be read; and so is a file beside the notebook."""
    right = handed_in("ada").read_bytes()
    handed_in("ada").unlink()
    helpers = handed_in("dalia").with_name("helpers.py")
    helpers.write_text("one")
    run()
    notebook = answered(course.released("traps"), square="def square(x):\n    return x**2  # mended")
    handed_in("chen").write_text(nbformat.writes(notebook))
    handed_in("ada").write_bytes(right[:500])
    helpers.write_text("two")
    summary, said = run()
    assert sorted(summary.graded) == ["ada", "chen", "dalia"]
    assert "notebooks that could not be read, with 0 points: 1" in said
    assert "the files in submitted/ are not those that were graded: ada, chen, dalia." in said
    assert "3 of them graded again, because the submitted files changed" in said
    assert "# mended" in autograded("chen").read_text()
    handed_in("ada").write_bytes(right)
    helpers.unlink()
    summary, said = run()
    assert sorted(summary.graded) == ["ada", "dalia"] and "could not be read" not in said
    assert grades(course)["ada"] == FULL


def test_work_without_a_time_is_named_and_a_time_given_later_counts(course: ScratchCourse) -> None:
    due(percent_a_day=50, ada="2027-03-05 11:00:00 UTC")
    summary, said = run()
    assert sorted(summary.timeless) == sorted(STUDENTS[1:])
    assert "submissions without a time, so nothing says whether they are late" in said
    due(bo="2027-03-05 13:00:00 UTC", ada="2027-03-05 11:30:00 UTC")
    summary, said = run()
    assert sorted(summary.graded) == ["ada", "bo"] and "without a time" not in said
    assert "1 of them graded again, because the time in timestamp.txt changed" in said
    with gradebook() as opened:
        assert opened.find_submission("traps", "bo").total_seconds_late == 3600
        assert opened.find_submission("traps", "bo").late_submission_penalty == 8


def test_what_cannot_be_read_and_what_was_put_back_is_named_with_the_reason(course: ScratchCourse) -> None:
    handed_in("ada").write_bytes(handed_in("ada").read_bytes()[:500])
    handed_in("bo").rename(handed_in("bo").with_name("traps (1).ipynb"))
    notebook = answered(course.released("traps"))
    delete(notebook, "double_check")
    find(notebook, "square_check").source = "1.0"
    handed_in("emeka").write_text(nbformat.writes(notebook))
    _, said = run()
    shown = report()
    assert "notebooks that could not be read, with 0 points: 2" in said
    assert "Could not be read (2)" in shown
    for words in (
        "The file `traps.ipynb` is not a Jupyter notebook: it is not valid JSON.",
        "The submission has no file `traps.ipynb`. It has `traps (1).ipynb`. Was the notebook renamed?",
    ):
        assert words in said and words in shown
    assert set(grades(course)["ada"].values()) == {0}
    assert "submissions in which cells of the assignment were put back: 1\n  emeka" in said
    assert "Cells put back (2)" in shown
    differed = "Cell square_check differed from the assignment's"
    assert f"emeka {differed}; restoring it emeka Cell double_check had been deleted" in shown


def test_points_by_hand_below_a_better_resubmission_are_named(course: ScratchCourse) -> None:
    run()
    decide("fumi", "square_hidden", 0.5)
    decide("bo", "square_hidden", 2)
    handed_in("fumi").with_name("timestamp.txt").write_text("2030-01-01 10:00:00 UTC")
    _, said = run()
    assert "points given by hand stay, but the test gives more by now: 1" in said
    assert "fumi: square_hidden: 0.5 by hand, 2 by the test" in said
    assert grades(course)["fumi"]["square_hidden"] == 0.5
    shown = report()
    assert "Points given by hand (2)" in shown
    assert "fumi square_hidden 0.5 2 the test gives more by now" in shown
    assert "bo square_hidden 2 2" in shown


def change(course: ScratchCourse, act: Callable[[NotebookNode], object], **ends: int) -> str:
    """Change the instructor's notebook, and tell nbgrader; what it says."""
    path = course.folder / "solutions" / "traps" / "traps.ipynb"
    notebook = nbformat.read(path, as_version=4)
    act(notebook)
    nbformat.write(notebook, path)
    return nbgrader(course, GenerateAssignmentApp, "traps", "--force", **ends)


def test_generate_assignment_says_what_a_change_means_for_those_graded(course: ScratchCourse) -> None:
    def mended(notebook: NotebookNode) -> None:
        cell = find(notebook, "square_check")
        cell.source += "  # mended"
        cell.metadata.nbgrader.points += 1

    def one_more(notebook: NotebookNode) -> None:
        new = deepcopy(find(notebook, "square_check"))
        new.metadata.nbgrader.grade_id, new.id = "square_more", "more"
        notebook.cells.append(new)

    assert "graded already" not in change(course, mended), "nobody is graded"
    run()
    assert "graded already" not in change(course, lambda _: None)
    said = change(course, mended)
    assert "Submissions of traps that are graded already: 6." in said
    assert "square_check (2 points → 3 points, other code)" in said
    assert "`python -m autograder grade traps`" in said and "Points given by hand stay." in said
    summary, said = run()
    assert sorted(summary.graded) == ALL
    assert "changed since submissions were graded (6)" in said
    said = change(course, one_more, status=1)
    assert "nbgrader refuses to add or remove cells: square_more (new)." in said
    assert run()[0].graded == []
