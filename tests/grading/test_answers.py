"""Answers of known worth are read and put into notebooks as they stand."""

import pytest
from repository import CHAPTERS, ROOT, SOLUTIONS

from autograder.authoring.answers import KnownAnswer, Worth, answers_to, read_answers
from autograder.authoring.scratch_course import points_table, rehearsal


def test_a_header_that_cannot_be_read_is_refused(tmp_path) -> None:
    (path := tmp_path / "answers.py").write_text("# %% pad check=one\n")
    with pytest.raises(ValueError, match=r"answers\.py: expected .* found '# %% pad check=one'"):
        read_answers(path)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_exercise_has_answers_that_lose_and_one_at_most_is_answered_by_the_text(chapter: str) -> None:
    answers = answers_to(chapter, ROOT)
    full = {
        exercise: {kind for kind, answer in kinds.items() if answer.points == kinds["solution"].points}
        for exercise, kinds in answers.items()
    }
    for exercise, kinds in answers.items():
        assert kinds.keys() >= {"solution", "unattempted", "transcribed"}, exercise
        assert len(kinds.keys() - full[exercise] - {"unattempted"}) >= 3, exercise
    assert sum("transcribed" in kinds for kinds in full.values()) <= 1


@pytest.mark.parametrize("clinic", [path.stem for path in SOLUTIONS if path.stem.startswith("clinic")])
def test_who_looks_at_no_piece_of_a_clinic_gets_less_than_a_third(clinic: str) -> None:
    most = dict.fromkeys(["solution", "nothing_wrong", "one_cause", "loops", "guesses"], 0.0)
    for kinds in answers_to(clinic, ROOT).values():
        for kind in most:
            most[kind] += sum(worth.high for worth in (kinds.get(kind) or kinds["as_is"]).points.values())
    assert sorted(most.values())[-2] < most["solution"] / 3, most


def test_points_agree_with_what_an_answer_is_worth() -> None:
    for worth, points, asked, agrees in [
        (Worth(2, 2), 2, None, True),
        (Worth(2, 2), 1.9, None, False),
        (Worth(0, 0), 0.2, None, True),  # as slow as given, and a little luck
        (Worth(0.5, 1), 1.1, None, False),
        (Worth(0, 1), None, None, False),
        # Another machine may find it twice as fast or slow, where four times is asked for.
        (Worth(0, 0), 1.0, 4, True),
        (Worth(0, 0), 1.1, 4, False),
        (Worth(2, 2), 0.9, 4, False),
    ]:
        assert worth.agrees(points, 2, asked) is agrees, (worth, points, asked)


def test_points_that_differ_are_reported_and_what_cannot_start_says_why(capsys) -> None:
    answers = {"pad": {"solution": KnownAnswer("pad", "solution", None, {"pad_check": Worth(2, 2)})}}
    for got, right in (2, True), (1.9, False), (None, False):
        rows, found = points_table(answers, {"ada": {"pad": "solution"}}, {"ada": {"pad_check": got}})
        assert found is (rows[0][1] == "2 solution") is right
        assert right or f"pad_check: {got}, not 2" in rows[0][1]
    for arguments in ["--assignment", "99_nothing"], ["--scratch", "."]:
        assert rehearsal(arguments) == 1 and capsys.readouterr().err.startswith("error: ")
