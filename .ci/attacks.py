"""Writes the table of attacks in SECURITY.md anew, from the files of tests/adversaries."""

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
FOLDER, PAGE = ROOT / "tests" / "adversaries", ROOT / "SECURITY.md"
ASSIGNMENTS = {"assignment", "traps"}  # what the attacks are handed in for
BETWEEN = re.compile(r"(?s)(<!-- attacks: .ci/attacks.py -->\n).*(<!-- end of attacks -->)")


def tried(path: Path) -> str:
    """What an attack says that it tries, in one line. Raises ValueError where it says nothing."""
    if not (said := ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))):
        raise ValueError(f"{path} does not say what it tries.")
    return " ".join(said.partition("\n\n")[0].split())


def written(page: str) -> str:
    """The page with today's table. Raises ValueError for an attack of no family."""
    families = tomllib.loads((FOLDER / "families.toml").read_text(encoding="utf-8"))["family"]
    left = {path.stem: tried(path) for path in sorted(FOLDER.glob("*.py")) if path.stem not in ASSIGNMENTS}
    rows, lists = ["| family | they | held by | not promised |", "|---|---|---|---|"], []
    for family in families:
        names = [name for name in left if any(fnmatch(name, like) for like in family["attacks"])]
        title = f"{family['name']} ({len(names)})"
        rows.append(f"| {title} | {family['try']} | {family['rests']} | {family['not']} |")
        lists += ["", f"<details><summary>{title}</summary>", ""]
        lists += [f"- `{name}`: {left.pop(name)}" for name in names]
        lists += ["", "</details>"]
    if left:
        raise ValueError(f"of no family in families.toml: {', '.join(left)}")
    return BETWEEN.sub(lambda marks: "\n".join([marks[1], *rows, *lists, "", marks[2]]), page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
