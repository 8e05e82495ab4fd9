"""The course's commands: `python -m autograder --help`."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    # Some shells switch Python's bytecode cache off; every start then compiles everything again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False

    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    if arguments.command in ("rehearsal", "grade", "report"):
        return import_module(f"autograder.grading.{arguments.command}").main(rest)
    if rest:
        parser.error(f"unknown arguments: {' '.join(rest)}")

    from autograder import authoring, links

    try:
        root = authoring.find_root()
        if arguments.command == "record":
            return authoring.record(root, arguments.names)
        if arguments.command == "links":
            changed = links.move(root, arguments.repository)
            print(f"{links.address(root)}: {len(changed)} files changed")
            return 0
        return authoring.make_notebooks(root, arguments.names, arguments.all)
    except (authoring.BuildError, links.LinksError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m autograder", description="Build, record, rehearse and grade the course."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    some = "only these, by the start of their names, as in 01"
    notebooks = commands.add_parser(
        "notebooks",
        help="build the notebooks from the percent scripts",
        description="Build the chapters (executed), the solutions and the exercises: those that changed.",
    )
    notebooks.add_argument("names", nargs="*", metavar="NAME", help=f"{some}; changed or not")
    notebooks.add_argument("--all", action="store_true", help="execute every chapter again")

    record = commands.add_parser(
        "record",
        help="record this machine's timings",
        description="Run the chapters and write their timings into data/timings. No notebook changes.",
    )
    record.add_argument("names", nargs="*", metavar="NAME", help=some)

    links = commands.add_parser(
        "links",
        help="write the repository's address everywhere",
        description="Write the repository's address into pyproject.toml, the pages and the notebooks.",
    )
    links.add_argument(
        "repository", nargs="?", default="", metavar="OWNER/NAME", help="as in ada/fast-pytorch"
    )

    # Their own options, --help too, are read by these commands themselves.
    commands.add_parser("grade", add_help=False, help="grade a class, in parallel")
    commands.add_parser("report", add_help=False, help="write a page about a graded class")
    commands.add_parser("rehearsal", add_help=False, help="grade a pretend class with nbgrader's commands")
    return parser


if __name__ == "__main__":
    sys.exit(main())
