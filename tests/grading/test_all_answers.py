"""Every answer in tests/answers, and every solution, gets its points as in ``make grade``."""

from __future__ import annotations

from pathlib import Path

import pytest
from grading_class import as_current
from pretend_class import api, hand_in
from repository import ROOT, SOLUTIONS

from autograder.authoring.answers import Answers, answers_to, expected_points, points_of, submission
from autograder.authoring.builder import build
from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading import engine
from autograder.class_grading.course import Course
from autograder.class_grading.results import read_results
from autograder.sandbox import Sandbox
from autograder.sandbox.submissions import supervisor
from autograder.sandbox.submissions.plan import plan

pytestmark = [pytest.mark.slow, pytest.mark.needs("bubblewrap")]


def class_of(answers: Answers) -> dict[str, dict[str, str]]:
    """As few students as it takes to hand in every kind of answer once: student → exercise → kind."""
    number = max(len(kinds) for kinds in answers.values())
    kinds = {exercise: list(found) + ["unattempted"] * number for exercise, found in answers.items()}
    return {f"student{i}": {exercise: found[i] for exercise, found in kinds.items()} for i in range(number)}


def grade(chapter: str, folder: Path, connect, root: Path = ROOT) -> list[str]:
    """Grade a class that hands in every answer of a chapter; what differs from the points expected.

    ``connect`` gives what runs the submissions. One verdict in 50 may be wrong at first, which takes half as
    many launches; what differs is graded again, as strictly as a class, and counts if it differs again. The
    solution must get every point on every machine, and the given version none in its race; how fast other
    ways are is a matter of the machine, too.
    """
    course = ScratchCourse(folder, root)
    course.add_assignment(root / "solutions" / chapter / f"{chapter}.py")
    assert api(course).generate_assignment(chapter)["success"]
    answers = answers_to(chapter, root)
    students = class_of(answers)
    for student, kinds in students.items():
        hand_in(course, chapter, student, submission(course.released(chapter), answers, kinds))
    most = expected_points(answers, dict.fromkeys(answers, "solution"))

    def differing(opened: Course, some: dict[str, dict[str, str]]) -> dict[tuple[str, str], str]:
        points = course.points(chapter)
        asked = {
            (graded.student, test.name): lap.required
            for graded in read_results(opened).graded
            for test in graded.tests
            for lap in test.laps
        }
        found = {}
        handed_in = [(who, exercise, kind) for who in some for exercise, kind in some[who].items()]
        for student, exercise, kind in handed_in:
            for test, wanted in answers[exercise][kind].points.items():
                ratio = None if kind in ("solution", "right_slow") else asked.get((student, test))
                got = points[student][test]
                if not wanted.agrees(got, most[test].high, ratio):
                    found[student, test] = f"{test} of {kind}: {got} instead of {wanted}"
        return found

    with as_current(course) as patch, Course(chapter) as opened, opened.locked():
        with patch.context() as roughly:
            roughly.setitem(supervisor.ERRORS, "now", 0.02)
            engine.grade(opened, connect=connect)
        first = differing(opened, students)
        unlucky = {student: students[student] for student, _ in first}
        if unlucky:
            engine.grade(opened, students=unlucky, force=True, connect=connect)
        again = differing(opened, unlucky)
    return [f"{first[place]}, then {again[place]}" for place in first if place in again]


@pytest.mark.parametrize("chapter", [source.stem for source in SOLUTIONS])
def test_answers_get_what_they_are_worth(chapter: str, tmp_path: Path, one_sandbox) -> None:
    assert grade(chapter, tmp_path, one_sandbox) == []


@pytest.mark.parametrize("chapter", ["13_cpu", "17_training_memory"])
def test_a_solution_is_lean_where_no_other_chapter_was_loaded(chapter: str) -> None:
    notebook = build(ROOT / "solutions" / chapter / f"{chapter}.py")
    work = [cell for cell in plan(notebook) if "race(" not in cell.source]
    with Sandbox() as box:
        outputs = box.run(work, assignment=chapter).outputs
    shown = {cell.grade_id: outputs[cell.index][-1].get("data") for cell in work if cell.role == "test"}
    assert shown == {name: {"text/plain": f"{points_of(notebook)[name]:g}"} for name in shown}
