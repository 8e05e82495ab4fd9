"""The commands that build notebooks and record timings: ``notebooks``, ``record``."""

from pathlib import Path

from ..command_line import CommandError, command, option

SOME = "only these, by the start of their names, as in 01"


@command(
    "notebooks",
    option("names", nargs="*", metavar="NAME", help=f"{SOME}; changed or not"),
    option("--all", action="store_true", help="execute every chapter again"),
)
def notebooks(names: list[str], all: bool) -> int:
    from . import builder

    return builder.make_notebooks(builder.find_root(), names, all)


@command(
    "record",
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
