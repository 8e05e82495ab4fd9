"""Work that takes a known time on the clock that judges, however busy the machine is."""

import time


def busy_for(seconds: float) -> None:
    """Compute until this process has used so many seconds of CPU time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
