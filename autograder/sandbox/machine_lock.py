"""Who may use this machine now: many that check answers, or one that times them."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path


class MachineLock:
    """A lock that all graders of one user on one machine share; it ends with the process that holds it."""

    def __init__(self) -> None:
        folder = Path(tempfile.gettempdir())
        # Whoever wants to time holds the queue, so that nobody new begins to check meanwhile.
        self._queue, self._machine = (
            os.open(
                folder / f"autograder-{os.getuid()}-{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
            for name in ("queue", "machine")
        )

    def share(self) -> None:
        """Use the machine together with others; waits while somebody times."""
        fcntl.flock(self._queue, fcntl.LOCK_SH)
        fcntl.flock(self._machine, fcntl.LOCK_SH)
        fcntl.flock(self._queue, fcntl.LOCK_UN)

    def take(self) -> None:
        """Have the machine alone: wait until nobody else works, and keep others from starting."""
        fcntl.flock(self._machine, fcntl.LOCK_UN)
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        fcntl.flock(self._machine, fcntl.LOCK_EX)

    def release(self) -> None:
        """Let everybody else use the machine."""
        fcntl.flock(self._machine, fcntl.LOCK_UN)
        fcntl.flock(self._queue, fcntl.LOCK_UN)
