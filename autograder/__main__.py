"""The course's commands: `python -m autograder --help`."""

import os
import sys

if __name__ == "__main__" and sys.path[0] == os.getcwd():
    # Where a command is called from, an answer may lie: no file beside it stands for one of Python's.
    sys.path.append(sys.path.pop(0))

import argparse
from importlib import import_module

from .command_line import PROGRAM, Command, extra, reported

# Command -> the module that has it (as ``main``, if no other name is given), and what it does.
COMMANDS = {
    "race": ("judge.race_command", "judge whether a function is right and fast enough"),
    "notebooks": ("authoring.course_commands:notebooks", "build the notebooks from the percent scripts"),
    "record": ("authoring.course_commands:record", "record this machine's timings"),
    "new-chapter": ("authoring.new_chapter", "start a chapter with its exercises"),
    "rehearsal": ("authoring.rehearsal", "grade a pretend class with nbgrader's commands"),
    "grade": ("class_grading.class_commands:grade", "grade a class, in parallel"),
    "again": ("class_grading.class_commands:again", "judge one exercise again, after a dispute"),
    "late": ("class_grading.class_commands:late", "count lateness anew for a graded class"),
    "report": ("class_grading.class_commands:report", "write a page about a graded class"),
    "watch": ("extras.watch", "grade what is handed in, as soon as it is there"),
    "term": ("extras.term", "write a page about the whole term, and one for each student"),
    "similar": ("extras.similar", "write a page about answers that look alike"),
    "fastest": ("extras.fastest", "write a page about the fastest answers"),
    "gradescope": ("extras.gradescope", "make an archive that grades on Gradescope"),
}


def main(argv: list[str] | None = None) -> int:
    # Some shells switch Python's bytecode cache off; every start then compiles everything again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False

    parser = argparse.ArgumentParser(prog=PROGRAM, description="Build, rehearse and grade the course.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (_, about) in COMMANDS.items():
        commands.add_parser(name, add_help=False, help=about)  # each reads its own options, --help too
    arguments, rest = parser.parse_known_args(argv)
    return reported(lambda: find(arguments.command)(rest))


def find(name: str) -> Command:
    """A command by its name. Raises CommandError for one that was left out of this installation."""
    place, _, function = COMMANDS[name][0].partition(":")
    module = extra(name) if place.startswith("extras.") else import_module(f"autograder.{place}")
    found: Command = getattr(module, function or "main")
    return found


if __name__ == "__main__":
    sys.exit(main())
