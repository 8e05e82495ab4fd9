"""What is handed in is graded at once: the command ``python -m autograder watch``.

``queue_file`` is for pages that show who waits; reading it takes neither nbgrader nor the gradebook.
"""

import signal
import sys
from contextlib import ExitStack
from typing import Any

from ...class_grading.class_commands import WHERE, connector, interrupts
from ...command_line import command, option


@command(
    "watch",
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
    try:
        with ExitStack() as ending:
            stop_if_asked = ending.enter_context(interrupts(signal.SIGTERM))
            connect = connector(ending, **where)
            from ...class_grading.course import Course  # while torch is loaded elsewhere
            from ...class_grading.gradebook import GradingError
            from ...nbgrader_plugin.submissions import only_one
            from .watcher import Watcher

            course = ending.enter_context(Course("watch", db))
            if not ending.enter_context(only_one(course.root, "watch.lock")):
                raise GradingError(f"Another watch command is at work in {course.root}: stop that one first.")
            watcher = Watcher(course, connect, assignment, db, release, not latest_counts, stop_if_asked)
            watcher.start()
            watcher.run()
    except KeyboardInterrupt:  # which is how it ends
        print("Stopped. The same command goes on from here.", file=sys.stderr)
