"""A student's feedback page, made and released by nbgrader's own code."""

from __future__ import annotations

import glob

from nbgrader.auth import Authenticator
from nbgrader.converters import GenerateFeedback
from nbgrader.exchange import ExchangeFactory

from ..nbgrader_plugin.collect import changed_settings
from .course import Course


def hand_back(course: Course, assignment: str, student: str, *, exchange: bool) -> None:
    """Make a student's page anew, and release it where there is an ``exchange``.

    Raises NbGraderException, ExchangeError or OSError where that is not possible.
    """
    directory, app = course.directory, course.grader.parent
    with changed_settings(directory, assignment_id=assignment, student_id=glob.escape(student)):
        GenerateFeedback(coursedir=directory, parent=app, force=True).start()
        if exchange:
            release = ExchangeFactory(parent=app).ReleaseFeedback(
                coursedir=directory, authenticator=Authenticator(parent=app), parent=app
            )
            release.start()
