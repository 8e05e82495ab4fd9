"""What the environment asks of a run that measures. Nobody else reads these variables, and grading has none.

They are for runs that look at the code around a measurement, or at one device, and are read anew each time.
"""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch


def wanted_devices() -> list[str]:
    """The devices to run on, by ``AUTOGRADER_DEVICES`` (`make gpu` sets it); none named: all."""
    return os.environ.get("AUTOGRADER_DEVICES", "").split()


def longest(device: str) -> float:
    """Seconds that a comparison on a device may take, by ``AUTOGRADER_SECONDS``; without it, no bound.

    "0.1" is for all devices (`make test`), "cpu=0" for one (`make gpu`).
    """
    of, _, seconds = os.environ.get("AUTOGRADER_SECONDS", "").rpartition("=")
    return float(seconds or "inf") if of in ("", torch.device(device).type) else math.inf


def records() -> Path | None:
    """The folder that comparisons are recorded in, by ``AUTOGRADER_RECORD`` (`make record` sets it)."""
    folder = os.environ.get("AUTOGRADER_RECORD")
    return Path(folder) if folder else None


@contextmanager
def alone() -> Iterator[None]:
    """Wait for other processes that measure, or keep timings, with the same folder in ``AUTOGRADER_ALONE``
    (`make gpu` sets it).
    """
    if not (path := os.environ.get("AUTOGRADER_ALONE")):
        yield
        return
    import fcntl  # not on Windows

    folder = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
