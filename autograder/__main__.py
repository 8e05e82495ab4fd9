"""The course's commands: `python -m autograder --help`."""

import os
import sys

if __name__ == "__main__" and sys.path[0] == os.getcwd():
    # Where a command is called from, an answer may lie: no file beside it stands for one of Python's.
    sys.path.append(sys.path.pop(0))

import argparse
from importlib import import_module

from .command_line import COMMANDS, PROGRAM, Command, extra, reported


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
