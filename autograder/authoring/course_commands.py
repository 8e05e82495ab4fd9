"""The commands that make the course: ``notebooks``, ``record``, ``links``, ``release``, ``new-chapter``."""

from __future__ import annotations

from pathlib import Path

from ..command_line import CommandError, command, option

SOME = "only these, by the start of their names, as in 01"


@command(
    "notebooks",
    "Build the chapters (executed), the solutions and the exercises: those that changed.",
    option("names", nargs="*", metavar="NAME", help=f"{SOME}; changed or not"),
    option("--all", action="store_true", help="execute every chapter again"),
)
def notebooks(names: list[str], all: bool) -> int:
    from . import builder

    return builder.make_notebooks(builder.find_root(), names, all)


@command(
    "record",
    "Run the chapters and write their timings into data/timings. No notebook changes.",
    option("names", nargs="*", metavar="NAME", help=SOME),
    option("--check", type=Path, metavar="FILE", help="say whether a record is whole and plausible"),
)
def record(names: list[str], check: Path | None) -> int:
    from . import builder, records

    root = builder.find_root()
    if not check:
        return builder.record(root, names)
    if found := records.shortcomings(check, root / "course"):
        raise CommandError("\nerror: ".join(f"{check}: {problem}" for problem in found))
    print(f"{check} is whole and plausible")
    return 0


@command(
    "links",
    "Write the repository's address into pyproject.toml, the pages and the notebooks.",
    option("repository", nargs="?", default="", metavar="OWNER/NAME", help="as in ada/fast-pytorch"),
)
def links(repository: str) -> None:
    from . import builder
    from .links import address, move

    root = builder.find_root()
    changed = move(root, repository)
    print(f"{address(root)}: {len(changed)} files changed")


@command(
    "release",
    "Write the version where it is said, commit, and tag. Nothing is sent anywhere.",
    option("version", nargs="?", default="", metavar="VERSION", help="as in 1.2.0"),
)
def release(version: str) -> None:
    from . import builder
    from .release import make_release

    make_release(builder.find_root(), version)
    print(f"Version {version} is committed and tagged; git push --follow-tags publishes it.")


@command(
    "new-chapter",
    "Write the scripts of a small, complete chapter, for its author to replace the contents.",
    option("name", metavar="NAME", help="two digits and lower-case words, as in 20_topic"),
)
def new_chapter(name: str) -> None:
    from . import builder
    from .new_chapter import new_chapter

    root = builder.find_root()
    for path in new_chapter(root, name):
        print(f"wrote {path.relative_to(root)}")
    print("It is a whole chapter. `make notebooks` builds it, `make check` tests it.")
    print("Now replace its contents: CONTRIBUTING.md tells how, in ten steps.")
