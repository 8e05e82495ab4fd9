"""Puts the course's own steps into nbgrader's pipeline, so that whatever is handed in is graded fairly.

It never runs a student's code in the process that grades (``sandbox`` does that apart), and never trusts what
a submission says about its own cells. Begin with ``configure`` below: it lists the steps in their order.
"""

import os
import shutil
import sys
from importlib.util import find_spec
from typing import Any


def configure(c: Any) -> None:
    """Put the course's steps into nbgrader's pipeline; ``c`` is the object that ``get_config()`` returns."""
    from . import patches
    from .entries import comma_separated, utc
    from .submissions import copy_time_and_secret, timestamp_of

    patches.check_nbgrader()
    if not shutil.which("alembic"):
        # nbgrader calls it by name, and an environment that was not activated is not on the PATH.
        os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    patches.replace(
        list_notebooks=_list_notebooks,
        copy_files=copy_time_and_secret,
        timestamp_of=timestamp_of,
        date=utc,
        table=comma_separated,
    )
    patches.protect_formgrader("autograder.nbgrader_plugin.pages.FormgraderPage")
    # Without CheckCellMetadata: RestoreCells takes nbgrader's notes on cells from the gradebook, not from the
    # submission, and checking them against their schema takes longer than running the cells.
    c.Autograde.exporter_class = "autograder.nbgrader_plugin.submissions.SubmissionExporter"
    c.SubmissionExporter.optimistic_validation = True  # once, not after every step
    c.GenerateAssignment.preprocessors = [
        "nbgrader.preprocessors.IncludeHeaderFooter",
        "nbgrader.preprocessors.InstantiateTests",
        "nbgrader.preprocessors.LockCells",
        "nbgrader.preprocessors.ClearSolutions",
        "nbgrader.preprocessors.ClearOutput",
        "nbgrader.preprocessors.CheckCellMetadata",
        "nbgrader.preprocessors.ComputeChecksums",
        "autograder.nbgrader_plugin.restore.SaveCellsInOrder",  # for SaveCells
        "nbgrader.preprocessors.ClearHiddenTests",
        "nbgrader.preprocessors.ClearMarkScheme",
        "nbgrader.preprocessors.ComputeChecksums",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.Autograde.sanitize_preprocessors = [
        "nbgrader.preprocessors.ClearOutput",
        "autograder.nbgrader_plugin.restore.RestoreCells",  # for DeduplicateIds and OverwriteCells
        "nbgrader.preprocessors.OverwriteKernelspec",
    ]
    c.Autograde.autograde_preprocessors = [
        "autograder.nbgrader_plugin.execute.RunEveryCell",  # for Execute
        "nbgrader.preprocessors.IgnorePattern",
        "nbgrader.preprocessors.LimitOutput",
        "autograder.nbgrader_plugin.points.ReadVerdicts",
        "autograder.nbgrader_plugin.points.SaveVerdicts",  # for SaveAutoGrades
        "nbgrader.preprocessors.AssignLatePenalties",
    ]
    c.AssignLatePenalties.plugin_class = "autograder.nbgrader_plugin.entries.TableOfLateWork"
    if find_spec("autograder.extras.lms"):
        c.ZipCollectApp.extractor_plugin = "autograder.extras.lms.archives.Extractor"
    c.HTMLExporter.filters.update({"highlight_code": "autograder.nbgrader_plugin.feedback.Highlight"})
    c.GenerateFeedback.exporter_class = "autograder.nbgrader_plugin.pages.FeedbackPage"
    c.GenerateFeedback.preprocessors = [
        "nbgrader.preprocessors.GetGrades",
        "autograder.nbgrader_plugin.feedback.HideTests",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]


def _list_notebooks(converter: Any) -> None:
    from .execute import list_where_cells_may_run  # the sandbox, which other commands do not need

    list_where_cells_may_run(converter)
