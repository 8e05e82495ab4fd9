"""Runs a submission's cells, and decides its points, in processes that hold each other in check.

It never runs a student's code in the process that judges it, and believes nothing that such a process says.
Begin with ``judge`` (one submission), then ``timed_race`` (a race) and ``decode`` (all that is not trusted).
"""

from .plan import plan
from .supervisor import Executed, Sandbox, SandboxError, Step

__all__ = ["Executed", "Sandbox", "SandboxError", "Step", "plan"]
