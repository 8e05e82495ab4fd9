"""Questions at a chapter's head about earlier chapters."""

import pytest
from repository import CHAPTERS

from autograder import recall
from autograder.teaching.recall import questions


def test_each_question_has_one_right_answer():
    for question in questions():
        assert question.chapter in CHAPTERS
        for _ in range(20):
            asked = question.drawn()
            assert asked.told(asked.answer).startswith("Right. ")
            assert asked.told("no") == f"It is {asked.answer}, not 'no'. {asked.because} ({asked.chapter})"


def test_questions_are_new_until_they_are_answered(capsys):
    seen = set()
    for _ in range(4):
        recall("19", ..., ..., ...)
        seen.add(asked := capsys.readouterr().out)
    recall("19", "no", ..., ...)
    told = capsys.readouterr().out
    assert len(seen) > 1 and told.startswith("Right: 0 of 3.") and told.count("not 'no'") == 1
    assert asked.rpartition("\n\n")[2].strip() in told, "the same questions"
    with pytest.raises(TypeError, match="takes 3 answers"):
        recall("19", 1)
