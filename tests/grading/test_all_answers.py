"""Every answer in tests/answers, and every solution, gets its points from the real ``nbgrader autograde``."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pretend_class import hand_in

from autograder.authoring.answers import Answers, answers_to, expected_points, submission
from autograder.authoring.builder import solution_sources
from autograder.authoring.scratch_course import ScratchCourse

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = [source.stem for source in solution_sources(ROOT)]
# An answer "as slow as given" may come out a little faster by luck: so much of a test's points is nothing.
NOTHING = 0.1

pytestmark = pytest.mark.slow


def class_of(answers: Answers) -> dict[str, dict[str, str]]:
    """As few students as it takes to hand in every kind of answer once: student → exercise → kind."""
    number = max(len(kinds) for kinds in answers.values())
    kinds = {exercise: list(found) + ["unattempted"] * number for exercise, found in answers.items()}
    return {f"student{i}": {exercise: found[i] for exercise, found in kinds.items()} for i in range(number)}


def grade(chapter: str, folder: Path, root: Path = ROOT) -> list[str]:
    """Grade a class that hands in every answer of a chapter; what differs from the points expected.

    One verdict in 1,000 may be wrong, and a run of these tests asks for hundreds: what differs is graded once
    more, and counts if it differs again.
    """
    course = ScratchCourse(folder, root)
    course.environment["TMPDIR"] = str(course.folder)  # no turns with the other chapter
    course.add_assignment(root / "solutions" / chapter / f"{chapter}.py")
    course.nbgrader("generate_assignment", chapter)
    answers = answers_to(chapter, root)
    students = class_of(answers)
    for student, kinds in students.items():
        hand_in(course, chapter, student, submission(course.released(chapter), answers, kinds))
    most = expected_points(answers, dict.fromkeys(answers, "solution"))

    def differing(*options: str) -> dict[tuple[str, str], str]:
        course.nbgrader("autograde", chapter, *options)
        points = course.points(chapter)
        return {
            (student, test): f"{test} with {kinds}: {points[student][test]} instead of {wanted}"
            for student, kinds in students.items()
            for test, wanted in expected_points(answers, kinds).items()
            if not as_expected(points[student][test], wanted, most[test])
        }

    first = differing()
    again = differing("--force") if first else {}
    return [f"{first[place]}, then {again[place]}" for place in first if place in again]


def as_expected(points: float | None, wanted: float, most: float) -> bool:
    """Whether a test gave what it should; nothing may be a little more than nothing."""
    return points is not None and (points == wanted or (wanted == 0 and points <= NOTHING * most))


@pytest.fixture(scope="module")
def differences(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """All chapters, two at a time."""
    folder = tmp_path_factory.mktemp("answers")
    with ThreadPoolExecutor(2) as two:
        return dict(zip(CHAPTERS, two.map(lambda name: grade(name, folder / name), CHAPTERS), strict=True))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_answers_get_what_they_are_worth(chapter: str, differences: dict[str, list[str]]) -> None:
    assert differences[chapter] == []
