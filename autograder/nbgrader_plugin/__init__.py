"""Puts the course's own steps into nbgrader's pipeline, so that whatever is handed in is graded fairly.

It never runs a student's code in the process that grades (``sandbox`` does that apart), and never trusts what
a submission says about its own cells. Begin with ``pipeline.toml``: it lists the steps in their order.
"""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def configure(c: Any) -> None:
    """Put the course's steps into nbgrader's pipeline; ``c`` is the object that ``get_config()`` returns."""
    import msgspec
    from traitlets.config import Config

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
    c.merge(Config(msgspec.toml.decode(Path(__file__).with_name("pipeline.toml").read_bytes())))
    if find_spec("autograder.extras.lms"):
        c.ZipCollectApp.extractor_plugin = "autograder.extras.lms.archives.Extractor"
    c.HTMLExporter.filters.update({"highlight_code": "autograder.nbgrader_plugin.pages.Highlight"})


def _list_notebooks(converter: Any) -> None:
    from .execute import list_where_cells_may_run  # the sandbox, which other commands do not need

    list_where_cells_may_run(converter)
