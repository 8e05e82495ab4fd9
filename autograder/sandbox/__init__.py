"""Runs a submission's cells without ever running a student's code in the process that judges it.

- ``sandbox``: the grader's side; starts a warm process inside bubblewrap and hands it notebooks;
- ``warm``: that process; forks a judge for each notebook, and the processes that the judge asks for;
- ``judge``: runs given cells and tests; ``standins`` is what it has in place of a student's functions;
- ``student``: runs a student's cells and answers the judge; ``shell`` runs a cell as a kernel would;
- ``races``: times two such processes against each other;
- ``channel`` and ``wire``: messages and values between them; ``processes``: the judge's handles;
- ``namespaces``: private rooms, and limits.
"""

from .supervisor import Executed, Sandbox, SandboxError, plan

__all__ = ["Executed", "Sandbox", "SandboxError", "plan"]
