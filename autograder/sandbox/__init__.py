"""Runs a submission's cells, and decides its points, in processes that hold each other in check.

It never runs a student's code in the process that judges it, and believes nothing that such a process says.
Begin with ``judge`` (one submission), then ``timed_race`` (a race) and ``decode`` (all that is not trusted).
"""

import sys

if not sys.platform.startswith("linux"):  # before a module is missing that only Linux has
    raise ImportError("grading needs Linux; on Windows, WSL is one.", name=__name__)

from .submissions.plan import plan
from .submissions.supervisor import Executed, Sandbox, SandboxError, Step, shared_sandbox
from .wire.messages import PlannedCell

__all__ = ["Executed", "PlannedCell", "Sandbox", "SandboxError", "Step", "plan", "shared_sandbox"]
