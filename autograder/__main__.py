"""The course's commands: `python -m autograder --help`."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path

_WITH_OWN_OPTIONS = {
    "again": "class_grading.again",
    "fastest": "class_grading.fastest",
    "grade": "class_grading.command",
    "gpu": "gpu.command",
    "gpu-wheels": "gpu.wheels",
    "gradescope": "authoring.gradescope",
    "late": "class_grading.late",
    "race": "judge.command",
    "rehearsal": "authoring.rehearsal",
    "report": "class_grading.report",
    "similar": "class_grading.similar",
    "term": "class_grading.term",
    "watch": "class_grading.watch",
}


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    # Some shells switch Python's bytecode cache off; every start then compiles everything again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False

    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    if arguments.command in _WITH_OWN_OPTIONS:
        try:
            command = import_module(f"autograder.{_WITH_OWN_OPTIONS[arguments.command]}")
        except ImportError as error:
            if error.name != "autograder.sandbox":
                raise
            print(f"error: {error}", file=sys.stderr)
            return 1
        return command.main(rest)
    if rest:
        parser.error(f"unknown arguments: {' '.join(rest)}")
    if arguments.command == "bundle":
        return import_module("autograder.authoring.bundle").main()

    from autograder.authoring import builder, links, release
    from autograder.authoring.git import GitError

    try:
        root = builder.find_root()
        if arguments.command == "new-chapter":
            return _new_chapter(root, arguments.name)
        if arguments.command == "record":
            return (
                _check_record(root, arguments.check)
                if arguments.check
                else builder.record(root, arguments.names)
            )
        if arguments.command == "release":
            release.make_release(root, arguments.version)
            print(
                f"Version {arguments.version} is committed and tagged; git push --follow-tags publishes it."
            )
            return 0
        if arguments.command == "links":
            changed = links.move(root, arguments.repository)
            print(f"{links.address(root)}: {len(changed)} files changed")
            return 0
        return builder.make_notebooks(root, arguments.names, arguments.all)
    except (builder.BuildError, links.LinksError, release.ReleaseError, GitError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _new_chapter(root: Path, name: str) -> int:
    from autograder.authoring.new_chapter import new_chapter

    for path in new_chapter(root, name):
        print(f"wrote {path.relative_to(root)}")
    print("It is a whole chapter. `make notebooks` builds it, `make check` tests it.")
    print("Now replace its contents: CONTRIBUTING.md tells how, in ten steps.")
    return 0


def _check_record(root: Path, path: Path) -> int:
    from autograder.authoring import records

    found = records.shortcomings(path, root / "course")
    for problem in found:
        print(f"error: {path}: {problem}", file=sys.stderr)
    if not found:
        print(f"{path} is whole and plausible")
    return int(bool(found))


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
    record.add_argument(
        "--check", type=Path, metavar="FILE", help="say whether a record is whole and plausible"
    )

    links = commands.add_parser(
        "links",
        help="write the repository's address everywhere",
        description="Write the repository's address into pyproject.toml, the pages and the notebooks.",
    )
    links.add_argument(
        "repository", nargs="?", default="", metavar="OWNER/NAME", help="as in ada/fast-pytorch"
    )

    release = commands.add_parser(
        "release",
        help="make a version",
        description="Write the version where it is said, commit, and tag. Nothing is sent anywhere.",
    )
    release.add_argument("version", nargs="?", default="", metavar="VERSION", help="as in 1.2.0")

    new_chapter = commands.add_parser(
        "new-chapter",
        help="start a chapter with its exercises",
        description="Write the scripts of a small, complete chapter, for its author to replace the contents.",
    )
    new_chapter.add_argument("name", metavar="NAME", help="two digits and lower-case words, as in 20_topic")

    commands.add_parser("bundle", help="make one archive that installs and runs without a network")

    # Their own options, --help too, are read by these commands themselves.
    commands.add_parser("grade", add_help=False, help="grade a class, in parallel")
    commands.add_parser("again", add_help=False, help="judge one exercise again, after a dispute")
    commands.add_parser("fastest", add_help=False, help="write a page about the fastest answers")
    commands.add_parser("gpu", add_help=False, help="measure all that waits for a GPU, on one")
    commands.add_parser("gpu-wheels", add_help=False, help="collect what a machine with a GPU may lack")
    commands.add_parser("gradescope", add_help=False, help="make an archive that grades on Gradescope")
    commands.add_parser("late", add_help=False, help="count lateness anew for a graded class")
    commands.add_parser("race", add_help=False, help="judge whether a function is right and fast enough")
    commands.add_parser("report", add_help=False, help="write a page about a graded class")
    commands.add_parser("similar", add_help=False, help="write a page about answers that look alike")
    commands.add_parser(
        "term", add_help=False, help="write a page about the whole term, and one for each student"
    )
    commands.add_parser("watch", add_help=False, help="grade what is handed in, as soon as it is there")
    commands.add_parser("rehearsal", add_help=False, help="grade a pretend class with nbgrader's commands")
    return parser


if __name__ == "__main__":
    sys.exit(main())
