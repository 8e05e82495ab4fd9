"""Tries what comes from outside, as Hypothesis makes it up: submitted files, and messages to the judge.

It ends with an error at the first input for which a property does not hold, and shows the smallest such one.
That goes to FOUND in tests/test_fuzzing.py, where the fast tests try it from then on.

    python benchmarks/fuzz.py --minutes 30
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis.strategies import SearchStrategy  # noqa: E402
from test_fuzzing import PROPERTIES  # noqa: E402

EXAMPLES = 300  # from one random start
SLOW = 20_000  # milliseconds for one input, after which it counts as hanging
MOST_MEMORY = 2 << 30  # bytes more than at the start


def main() -> None:
    """Try all properties in turn until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1)
    end = time.monotonic() + 60 * parser.parse_args().minutes
    tried = dict.fromkeys(PROPERTIES, 0)
    before = memory()
    while time.monotonic() < end:
        for name, checked in PROPERTIES.items():
            tried[name] += trial(*checked)
            if memory() - before > MOST_MEMORY:
                sys.exit(f"{name}: it took {memory() - before >> 20} MiB of memory")
    for name, number in tried.items():
        print(f"{number:9,} times {name}")


def trial(check: Callable[[Any], None], made: SearchStrategy) -> int:
    """Try a property; gives for how many inputs it held. Raises what went wrong."""
    number = 0

    def holds(value: object) -> None:
        nonlocal number
        number += 1
        check(value)

    settings(max_examples=EXAMPLES, deadline=SLOW, database=None, suppress_health_check=list(HealthCheck))(
        given(made)(holds)
    )()
    return number


def memory() -> int:
    """The most bytes of memory that this process had until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
