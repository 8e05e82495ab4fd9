"""Submissions graded apart from all others, so that one that has fewer points changes nothing."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

from ...class_grading.course import Course, Submission
from ...class_grading.grader import Ran
from ...nbgrader_plugin.collect import OWN_FOLDER
from .intake import NEW, replace_folder
from .queue_file import Place

TRIAL = os.path.join(OWN_FOLDER, "trial")
EXACT_POINTS = 1e-6


class Trial(Course):
    """The course with nothing in it but the submissions that wait; what counts of them gets to the others.

    ``best``: a submission counts if it has as many points as the one before, or more; otherwise each does.
    What was graded is in ``graded``, with its points less the penalty for being late. The grades of one that
    counts are written in one transaction, and its notebook follows. Of one that does not, nothing is written.
    """

    shuffled = False  # who handed in first comes first

    def __init__(self, line: Sequence[Place], db_url: str | None = None, *, best: bool) -> None:
        super().__init__(line[0].assignment, db_url)
        self.graded: list[Place] = []
        self._line = {one.student: one for one in line}
        self._best, self._counted = best, self.directory.autograded_directory
        self.directory.submitted_directory, self.directory.autograded_directory = NEW, TRIAL
        shutil.rmtree(self.root / TRIAL, ignore_errors=True)  # of a run that was stopped

    def submissions(self) -> list[Submission]:
        found = {one.student: one for one in super().submissions()}
        return [found[student] for student in self._line if student in found]

    def save(self, student: str, ran: Ran) -> None:
        """Grade one student's submission, and keep that if it counts. Raises what ``Course.save`` raises."""
        counted = Path(self.directory.format_path(self._counted, student, self.assignment))
        tried = self.autograded(student)
        with self.explained(student):
            before = self._points(student)[0] if counted.exists() else None
            self.grader.grade(student, ran, lambda: None)
            after, most = self._points(student)
            assert after is not None  # it was just graded
            counts = not self._best or before is None or after > before - EXACT_POINTS
            if counts:
                self.gradebook.commit()
                replace_folder(tried, counted)
            else:
                shutil.rmtree(tried)
            place = replace(self._line[student], stage="graded" if counts else "passed over")
            self.graded.append(replace(place, points=after, most=most, before=before))

    def _points(self, student: str) -> tuple[float | None, float]:
        """What a student has in this transaction, and the most there is."""
        with Gradebook(self.db_url) as gradebook:
            try:
                found = gradebook.find_submission(self.assignment, student)
            except MissingEntry:
                return None, 0.0
            penalty = found.late_submission_penalty or 0.0
            return max(0.0, found.score - penalty), found.max_score
