"""What an instructor runs: the course's plug-in for nbgrader, answers of known worth, a rehearsal.

nbgrader stays in charge. ``configure`` puts these steps into its pipeline, each in a module of its own:

- ``submissions`` reads what a student handed in, also when it is no notebook, or nothing at all;
- ``restore`` puts back test cells that were changed or deleted;
- ``execute`` runs every cell, with limits, and starts a fresh kernel when a cell ends it;
- ``verdicts`` turns what a test cell displayed into points: anything it cannot read counts 0;
- ``feedback`` hides the hidden tests from the pages that students get.

For a whole class at once, ``grade`` (``python -m autograder grade``) does what ``nbgrader autograde`` does:

- ``engine`` has all submissions run, and their grades written;
- ``course`` opens nbgrader's settings, ``gradebook`` the database, once for all submissions;
- ``cluster`` runs their cells on the workers of a Dask cluster, here or elsewhere; ``progress`` counts them;
- ``results`` reads what came out, ``report`` makes a page of it.

``answers`` builds submissions of known worth; ``rehearsal`` takes a class of them through all of nbgrader.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any


def configure(c: Any) -> None:
    """Put the course's steps into nbgrader's pipeline; ``c`` is the object that ``get_config()`` returns."""
    from . import patches
    from .submissions import init_notebooks

    patches.check_nbgrader()
    if not shutil.which("alembic"):
        # nbgrader calls it by name, and an environment that was not activated is not on the PATH.
        os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    patches.list_notebooks_with(init_notebooks)
    # Without CheckCellMetadata: RestoreCells takes nbgrader's notes on cells from the gradebook, not from the
    # submission, and checking them against their schema takes longer than running the cells.
    c.Autograde.exporter_class = "autograder.nbgrader_plugin.submissions.SubmissionExporter"
    c.SubmissionExporter.optimistic_validation = True  # once, not after every step
    c.Autograde.sanitize_preprocessors = [
        "nbgrader.preprocessors.ClearOutput",
        "autograder.nbgrader_plugin.restore.RestoreCells",  # for DeduplicateIds and OverwriteCells
        "nbgrader.preprocessors.OverwriteKernelspec",
    ]
    c.Autograde.autograde_preprocessors = [
        "autograder.nbgrader_plugin.execute.RunEveryCell",  # for Execute
        "nbgrader.preprocessors.IgnorePattern",
        "nbgrader.preprocessors.LimitOutput",
        "autograder.nbgrader_plugin.verdicts.ReadVerdicts",
        "autograder.nbgrader_plugin.verdicts.SaveVerdicts",  # for SaveAutoGrades
        "nbgrader.preprocessors.AssignLatePenalties",
    ]
    c.GenerateFeedback.preprocessors = [
        "nbgrader.preprocessors.GetGrades",
        "autograder.nbgrader_plugin.feedback.HideTests",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]
