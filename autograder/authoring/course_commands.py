"""The commands that build notebooks, record timings, and start a chapter with its exercises and answers."""

import re
from pathlib import Path

from ..command_line import CommandError, command, option
from .sources import BuildError, find_root

SOME = "only these, by the start of their names, as in 01"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "chapter"
TEMPLATES = ("chapter.py", "exercises.py", "known_answers.py")
END_OF_MAP = "    }\n)"
NAME = re.compile(r"(\d\d)_([a-z][a-z0-9]*(?:_[a-z0-9]+)*)")


@command(
    "notebooks",
    option("names", nargs="*", metavar="NAME", help=f"{SOME}; changed or not"),
    option("--all", action="store_true", help="execute every chapter again"),
)
def notebooks(names: list[str], all: bool) -> int:
    from . import builder

    return builder.make_notebooks(find_root(), names, all)


@command(
    "record",
    option("names", nargs="*", metavar="NAME", help=SOME),
    option("--check", type=Path, metavar="FILE", help="say whether a record is whole and plausible"),
)
def record(names: list[str], check: Path | None) -> int:
    from . import builder, records

    root = find_root()
    if not check:
        return builder.record(root, names)
    if found := records.shortcomings(check, root / "course"):
        raise CommandError("\nerror: ".join(f"{check}: {problem}" for problem in found))
    print(f"{check} is whole and plausible")
    return 0


@command("new-chapter", option("name", metavar="NAME", help="digits and lower-case words, as in 30_topic"))
def chapter(name: str) -> None:
    root = find_root()
    for path in new_chapter(root, name):
        print(f"wrote {path.relative_to(root)}")
    print("It is a whole chapter. `make notebooks` builds it, `make check` tests it.")
    print("Now replace its contents: CONTRIBUTING.md tells how, in ten steps.")


def new_chapter(root: Path, name: str) -> list[Path]:
    """Write the three scripts of a chapter called `name`, as in 30_topic, and its line on the front page.

    Gives their paths. What they hold builds, runs and passes all tests as it is. Raises BuildError for a name
    of another form, and where its number or its topic is taken.
    """
    if not (words := NAME.fullmatch(name)):
        raise BuildError(f"{name!r} is no name for a chapter: two digits, lower-case words, as in 30_topic")
    number, topic = words.groups()
    for folder in ("course", "solutions", "tests/answers"):
        for there in sorted((root / folder).glob("[0-9][0-9]_*")):
            if number == there.stem[:2] or topic == there.stem[3:]:
                raise BuildError(f"{name} cannot be added: there is {there.relative_to(root)}")
    title = topic.replace("_", " ").capitalize()
    texts = {}
    for folder, template in zip(("course", f"solutions/{name}", "tests/answers"), TEMPLATES, strict=True):
        text = (EXAMPLES / template).read_text(encoding="utf-8").replace("NN_topic", name)
        text = text.replace('"NN"', f'"{number}"')
        texts[root / folder / f"{name}.py"] = text.replace("NN · New topic", f"{number} · {title}")
    index = root / "course" / "index.py"
    page = index.read_text(encoding="utf-8")
    before, end, after = page.rpartition(END_OF_MAP)
    if not end:
        raise BuildError(f"{index.relative_to(root)} lacks the end of its map, {END_OF_MAP!r}")
    texts[index] = f'{before}        "{name}": "what it is about",\n{end}{after}'
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)
