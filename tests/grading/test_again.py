"""A dispute: an exercise is judged again, the old verdict stays beside the new one, and so do decisions."""

import json
import shutil
from pathlib import Path
from typing import ClassVar

import pytest
from grading_class import Says, built_once, copied, decide, gradebook, grades, handed_in, scores
from pretend_pools import Pretending, graded, half_undecided, pretend
from test_report import Text

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading import pool
from autograder.class_grading.class_commands import again as main
from autograder.class_grading.class_report import page
from autograder.class_grading.course import Course
from autograder.class_grading.results import read_results
from autograder.nbgrader_plugin.submissions import only_one
from autograder.sandbox import Executed, PlannedCell

pytestmark = pytest.mark.slow  # nbgrader's own commands, or a gradebook for each test
ADA = ("traps", "--student", "ada", "--exercise", "square")
PAGE = Path("autograded/ada/traps/traps.ipynb")


class Pretended(Pretending):
    """Takes the place of the sandbox: full points, or an undecided race. It notes which tests were run."""

    undecided: ClassVar[bool] = False
    ran: ClassVar[list[tuple[str, list[str]]]] = []

    def run(self, cells: list[PlannedCell], *, races: str, only: list[int], **settings: object) -> Executed:
        assert settings["assignment"] == "traps" and settings["cell_seconds"]
        self.ran.append((races, [cell.grade_id for cell in cells if cell.index in only]))
        data = pretend(cells, races=races, only=only, undecided=self.undecided)
        data["events"] = [{"cell": "square_check", "what": "Tried \x1b[1mthis\x1b[0m."}]
        return Executed(**data)


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScratchCourse:
    """A graded class of its own for each test, in the current folder, with a pretended sandbox."""
    made = copied(built_once("undecided", half_undecided), tmp_path / "class")
    monkeypatch.chdir(made.folder)
    monkeypatch.setattr(pool, "Sandbox", lambda **_: Pretended())
    monkeypatch.setattr(Pretended, "ran", [])
    return made


def waiting() -> set[str]:
    """The tests of ada's that need a manual grade."""
    with gradebook() as opened:
        (book,) = opened.find_submission("traps", "ada").notebooks
        return {entry.name for entry in book.grades if entry.needs_manual_grade}


def disputes() -> list[dict]:
    return [json.loads(line) for line in Path(".grading/traps.disputes.jsonl").read_text().splitlines()]


def test_both_verdicts_are_shown_and_nothing_changes(course: ScratchCourse, says: Says) -> None:
    before, notebook = grades(course), PAGE.read_bytes()
    said = " ".join(says(main, *ADA).split())
    for words in (
        "ada, square: Test Before Now What counts",
        "square_check 1 points, passed: as told 1 points, passed: as told before",
        "square_hidden 0.5 points, undecided: as told 2 points, passed: as told before",
        r"suspicious: square_check: Tried \x1b[1mthis\x1b[0m.",
        "No points were changed.",
        "--keep better",
    ):
        assert words in said
    assert Pretended.ran == [("now", ["square_check", "square_hidden"])]
    assert grades(course) == before and PAGE.read_bytes() == notebook
    (kept,) = disputes()
    assert (kept["student"], kept["exercise"]) == ("ada", "square")
    assert [test["counts"] for test in kept["tests"]] == ["before", "before"]


def test_the_better_verdict_counts_if_asked_for(course: ScratchCourse, says: Says) -> None:
    before, mode = grades(course), PAGE.stat().st_mode
    assert scores()["ada"] == 0.5 * 14.5
    decide("ada", "negate_check", 0.75)
    said = says(main, "traps", "--student", "bo", "ada", "--exercise", "square", "--keep", "better")
    assert "The new verdict counts for 2 of 2. Make and release their feedback anew." in said
    better = {student: before[student] | {"square_hidden": 2} for student in ("ada", "bo")}
    better["ada"]["negate_check"] = 0.75
    assert grades(course) == before | better
    assert [kept["student"] for kept in disputes()] == ["ada", "bo"]
    assert waiting() == set()
    assert scores()["ada"] == 0.5 * 15.75, "lateness is counted of the new points"
    assert PAGE.stat().st_mode == mode
    with Course("traps") as opened:
        assert opened.reason(opened.submissions()[0]) is None
        results = read_results(opened)
    (test,) = (test for test in results.graded[0].tests if test.name == "square_hidden")
    assert (test.points, test.outcome) == (2, "passed")
    shown = Text(page(results)).text
    assert "Judged again (4)" in shown
    assert "0.5 points, undecided: as told 2 points, passed: as told now" in shown


@pytest.mark.parametrize(("keep", "points"), [("better", 2), ("new", 0.5)])
def test_a_worse_verdict_counts_only_if_asked_for(course, monkeypatch, keep: str, points: float) -> None:
    assert main([*ADA, "--keep", "better"]) == 0
    monkeypatch.setattr(Pretended, "undecided", True)
    assert main([*ADA, "--keep", keep]) == 0
    assert Pretended.ran[-1] == ("again", ["square_hidden"]), "noise gets a second try, as in grading"
    assert grades(course)["ada"]["square_hidden"] == points
    assert ("square_hidden" in waiting()) == (points == 0.5)
    assert [test["counts"] for test in disputes()[-1]["tests"]] == ["now" if keep == "new" else "before"] * 2


@pytest.mark.parametrize("points", [0.25, 0.0, 3.0])
def test_points_by_hand_stay_and_no_other_is_opened(course: ScratchCourse, says: Says, points: float) -> None:
    decide("ada", "square_hidden", points)
    decide("ada", "negate_check", 0.75)
    before, notebook = waiting(), PAGE.read_bytes()
    says(main, *ADA, "--keep", "better")
    assert PAGE.read_bytes() == notebook, "the decision covers a better verdict"
    assert f"{points:g} points, by hand" in says(main, *ADA, "--keep", "new")
    assert waiting() == before
    with gradebook() as opened:
        entry = opened.find_grade("square_hidden", "traps", "traps", "ada")
        assert (entry.manual_score, entry.auto_score, entry.needs_manual_grade) == (points, 0.5, False)
    assert [test["counts"] for test in disputes()[-1]["tests"]] == ["now", f"{points:g} points, by hand"]


def test_what_is_refused(course: ScratchCourse, says: Says) -> None:
    for arguments, sentence in (
        (["tarps", *ADA[1:]], "The gradebook has no assignment 'tarps'. Did you mean traps?"),
        (["traps", "--student", "adda", "--exercise", "square"], "Did you mean ada?"),
        (["traps", "--student", "ada", "--exercise", "sqare"], "no exercise 'sqare'. Did you mean square?"),
        (["traps", "--student", "ada", "--exercise", "square_hidden"], "Did you mean square?"),
        (["traps", "--student", "ada", "--exercise", "7"], "has no exercise '7'. It has "),
    ):
        assert sentence in says(main, *arguments, status=1)
    with only_one(course.folder):
        assert "Another grade command is at work" in says(main, *ADA, status=1)
    assert not Pretended.ran
    before, notebook = grades(course), PAGE.read_bytes()
    Path(".grading/traps.disputes.jsonl").write_text("no JSON\n")  # the old verdict could not be kept
    assert "traps.disputes.jsonl cannot be read" in says(main, *ADA, "--keep", "new", status=1)
    assert grades(course) == before and PAGE.read_bytes() == notebook


def test_what_is_to_be_graded_first_or_is_unreadable_is_not_judged(course: ScratchCourse, says: Says) -> None:
    handed_in("ada").write_text("{")
    said = says(main, *ADA, status=1)
    assert "ada: grade it first, as the submitted files changed:" in said
    assert graded().graded == ["ada"]
    shutil.rmtree("autograded/bo")
    said = says(main, "traps", "--student", "ada", "bo", "chen", "--exercise", "square", status=1)
    assert "error: ada: The file `traps.ipynb` is not a Jupyter notebook" in said
    assert "bo: grade it first, as it is not graded yet: python -m autograder grade" in said
    assert "chen, square:" in said, "those that cannot be judged do not stop the others"
