"""A class that hands in given answers, graded as `make grade` does it, in a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import nbformat

from autograder.authoring.scratch_course import ScratchCourse
from autograder.class_grading.course import Course
from autograder.class_grading.engine import grade
from autograder.class_grading.pool import LocalPool, begun
from autograder.class_grading.results import ClassResults, read_results
from autograder.roles import solution_cells
from autograder.sandbox.racing.machine_lock import cores

ROOT = Path(__file__).resolve().parents[1]


def graded(
    chapter: str, folder: Path, handed_in: Mapping[str, Mapping[str, str | None]]
) -> tuple[ClassResults, dict[str, dict[str, float | None]]]:
    """Grade a chapter in ``folder``: what grading gave, and the points by student and test cell.

    ``handed_in`` has each student's code by exercise; None, or no entry, for one that was not attempted.
    """
    course = ScratchCourse(folder, ROOT)
    course.add_assignment(ROOT / "solutions" / chapter / f"{chapter}.py")
    course.nbgrader("generate_assignment", chapter)
    for student, answers in handed_in.items():
        notebook = course.released(chapter)
        for exercise, cell in solution_cells(notebook).items():
            cell.source = answers.get(exercise) or cell.source
        place = course.folder / "submitted" / student / chapter
        place.mkdir(parents=True)
        nbformat.write(notebook, place / f"{chapter}.ipynb")
    os.environ.update(course.environment)
    before = Path.cwd()
    os.chdir(course.folder)
    try:
        with Course(chapter) as opened, opened.locked(), closing(LocalPool(begun(len(cores())))) as pool:
            grade(opened, connect=lambda _: pool)  # of as many workers as `make grade` takes
            results = read_results(opened)
    finally:
        os.chdir(before)
    return results, course.points(chapter)
