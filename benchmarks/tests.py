"""How long `make test` takes, and where the time goes: seconds by file, summed over the processes.

Exits with 1 where the whole takes longer than it should. On two cores, and with nothing else to do for them:

    python benchmarks/tests.py           # about 12 minutes
    python benchmarks/tests.py --quick   # only what `make check` runs
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST = {"test": 12 * 60.0, "check": 2 * 60.0}
SHOWN = 25
# A line of pytest's --durations.
DURATION = re.compile(r"^ *([\d.]+)s (?:call|setup|teardown) +(.+?)::")


def main() -> None:
    """Run the tests, print what took longest, and compare the total with what it may be."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="only what `make check` runs")
    target = "check" if parser.parse_args().quick else "test"
    start = time.perf_counter()
    lines = run(["make", target, "DURATIONS=0"])
    total = time.perf_counter() - start
    files: defaultdict[str, float] = defaultdict(float)
    for line in lines:
        if found := DURATION.match(line):
            files[found[2]] += float(found[1])
    for file, seconds in sorted(files.items(), key=lambda item: item[1], reverse=True)[:SHOWN]:
        print(f"{seconds:8.1f} s  {file}")
    print(f"{sum(files.values()):8.1f} s  in all files and processes")
    print(
        f"{total:8.1f} s  make {target}, on {os.cpu_count()} cores; it should take at most {MOST[target]:g} s"
    )
    sys.exit(total > MOST[target])


def run(command: list[str]) -> list[str]:
    """Run a command that must succeed; shows what it prints as it comes, and gives the lines."""
    lines = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if not DURATION.match(line):
                print(line, end="", flush=True)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed.")
    return lines


if __name__ == "__main__":
    main()
