"""One class of students, graded once by the real nbgrader commands; the tests look at what came out."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from pretend_class import TIME_LIMIT, Graded, answered, hand_in, submissions

from autograder.grading.scratch import CommandFailed, ScratchCourse


@pytest.fixture(scope="session")
def traps(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Graded:
    """All kinds of bad input, one student each, graded in one run."""
    course = ScratchCourse(tmp_path_factory.mktemp("course"), root)
    assignment = course.add_assignment(Path(__file__).parent / "traps.py")
    (course.folder / "solutions" / assignment / f"{assignment}.py").write_text("# the solutions' script")
    course.nbgrader("generate_assignment", assignment)
    for student, content in submissions(course.released(assignment)).items():
        hand_in(course, assignment, student, content)
    renamed = course.folder / "submitted" / "renamed" / assignment / "my copy.ipynb"
    nbformat.write(answered(course.released(assignment)), renamed)
    failure = None
    try:
        course.nbgrader("autograde", assignment, f"--Execute.timeout={TIME_LIMIT}")
    except CommandFailed as error:  # for one test to tell; the others look at the students
        failure = error
    course.nbgrader("generate_feedback", assignment)
    return Graded(course, assignment, failure)
