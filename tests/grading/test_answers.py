"""Answers of known worth are read and put into notebooks as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.authoring.answers import KnownAnswer, answers_to, expected_points, read_answers, submission
from autograder.authoring.builder import build, solution_sources
from autograder.authoring.rehearsal import main, points_table
from autograder.roles import exercise_of, solution_cells

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "01_tensor_creation"


def test_each_cell_is_one_answer(tmp_path: Path) -> None:
    path = tmp_path / "answers.py"
    path.write_text(
        "# %% [markdown]\n# Answers.\n\n# %%\nimport torch\n\n"
        "# %% pad right_slow check=1 hidden=2.5\ndef pad(x):\n    return x\n\n\n# %% pad none\npad = None\n"
    )
    assert read_answers(path) == [
        KnownAnswer("pad", "right_slow", "def pad(x):\n    return x", {"pad_check": 1, "pad_hidden": 2.5}),
        KnownAnswer("pad", "none", "pad = None", {}),
    ]


def test_a_header_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.py"
    path.write_text("# %% pad check=one\n")
    with pytest.raises(ValueError, match=r"answers\.py: expected .* found '# %% pad check=one'"):
        read_answers(path)


@pytest.mark.parametrize("chapter", [path.stem for path in solution_sources(ROOT)])
def test_every_exercise_has_a_slow_and_a_wrong_answer(chapter: str) -> None:
    for exercise, kinds in answers_to(chapter, ROOT).items():
        assert kinds.keys() >= {"solution", "unattempted", "right_slow", "wrong_fast"}, exercise


def test_a_submission_holds_the_chosen_answers(root: Path) -> None:
    answers = answers_to(CHAPTER, root)
    source = build(root / "solutions" / CHAPTER / f"{CHAPTER}.py")
    kinds = {exercise: "right_slow" for exercise in answers}
    kinds["one_hot"] = "unattempted"
    cells = solution_cells(submission(source, answers, kinds))
    assert cells["pad"].source == answers["pad"]["right_slow"].code
    assert cells["one_hot"].source == solution_cells(source)["one_hot"].source
    expected = expected_points(answers, kinds)
    assert expected["one_hot_check"] == 0
    assert expected["pad_check"] == 1


def test_a_test_cell_belongs_to_the_longest_name() -> None:
    assert exercise_of("pad_rows_check", ["pad", "pad_rows"]) == "pad_rows"
    assert exercise_of("pad_check", ["pad", "pad_rows"]) == "pad"
    assert exercise_of("padding", ["pad"]) is None


@pytest.mark.parametrize(("got", "right"), [(2, True), (1.9, False), (None, False)])
def test_points_that_differ_are_reported(got: float | None, right: bool) -> None:
    answers = {"pad": {"solution": KnownAnswer("pad", "solution", None, {"pad_check": 2})}}
    rows, found = points_table(answers, {"ada": {"pad": "solution"}}, {"ada": {"pad_check": got}})
    assert found is right
    assert (rows[0][1] == "2 solution") is right
    assert right or f"pad_check: {got}, not 2" in rows[0][1]


@pytest.mark.parametrize("arguments", [["--assignment", "99_nothing"], ["--scratch", "."]])
def test_a_rehearsal_that_cannot_start_says_why(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    assert capsys.readouterr().err.startswith("error: ")
