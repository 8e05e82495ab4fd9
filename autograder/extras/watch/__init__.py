"""What is handed in is graded at once: the command ``python -m autograder watch``.

``queue_file`` is for pages that show who waits; reading it takes neither nbgrader nor the gradebook.
"""

from __future__ import annotations

import sys
from typing import Any

from ...class_grading.class_commands import WHERE
from ...command_line import command, option


@command(
    "watch",
    "Grade what is handed in, as soon as it is there, until Ctrl-C. In the course's folder.",
    option("assignment", nargs="*", metavar="ASSIGNMENT", help="only these"),
    option("--release", action="store_true", help="also make and release each feedback page"),
    option(
        "--latest-counts",
        action="store_true",
        help="a student's last submission counts, and not the one with most points",
    ),
    *WHERE,
)
def main(assignment: list[str], release: bool, latest_counts: bool, db: str | None, **where: Any) -> None:
    from .watcher import watch

    try:
        watch(assignment, db, release=release, best=not latest_counts, **where)
    except KeyboardInterrupt:  # which is how it ends
        print("Stopped. The same command goes on from here.", file=sys.stderr)
