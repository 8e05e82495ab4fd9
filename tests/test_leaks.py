"""Nothing that only instructors may see is found under exercises/."""

import html
import json
import re
import shutil
from functools import cache
from pathlib import Path

from repository import EXERCISES, ROOT, SOLUTIONS, built

MARKER = re.compile(r"\b(BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')  # in JSON; a notebook has each line as one
SHORTEST = 12  # shorter lines (`return x`, `else:`) give nothing away


def plain(line: str) -> str:
    """A line as it is compared: no indentation, no HTML, single spaces."""
    return " ".join(html.unescape(line).split())


def tells(line: str) -> bool:
    """Whether somebody could make something of it."""
    return len(line.replace(" ", "")) >= SHORTEST


@cache
def split(source: Path) -> tuple[list[str], list[str]]:
    """(secret, visible) lines of code of one solution's script."""
    secret, visible = [], []
    for cell in built(source).cells:
        if cell.cell_type != "code":
            continue
        lines = cell.source.splitlines()
        if cell.metadata.get("nbgrader", {}).get("solution") and not MARKER.search(cell.source):
            secret += lines  # nbgrader clears such a cell whole
            continue
        inside = False
        for line in lines:
            if found := MARKER.search(line):
                inside = found[1] == "BEGIN"
            else:
                (secret if inside else visible).append(line)
    return [plain(line) for line in secret], [plain(line) for line in visible]


def texts(folder: Path):
    """(file, line) for everything readable under a folder."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes().decode("utf-8", errors="replace")
            parts = map(json.loads, STRING.findall(content)) if path.suffix == ".ipynb" else [content]
            yield from ((path, plain(line)) for part in parts for line in part.splitlines())


def leaks(exercises: Path, sources) -> list[str]:
    """What is found under `exercises` and should not be.

    A line that the given code shows as well (`array = array.copy()`) may occur as often as it does there.
    """
    found = [f"{path}: a script" for path in exercises.rglob("*.py")]
    lines = list(texts(exercises))
    found += [f"{path}: {line}" for path, line in lines if MARKER.search(line)]
    secret = {line for source in sources for line in split(source)[0] if tells(line)}
    visible = [line for source in sources for line in split(source)[1]]
    everything = "\n".join(text for _, text in lines)
    for line in sorted(line for line in secret if line in everything):
        places = [path for path, text in lines if line in text]
        if len(places) > sum(line in text for text in visible):
            found += [f"{path}: {line}" for path in places]
    return found


def test_nothing_leaks():
    sizes = {source.stem: [len(set(lines)) for lines in split(source)] for source in SOLUTIONS}
    assert {name: size for name, size in sizes.items() if min(size) < 2} == {}, "there is nothing to look for"
    assert all(path.is_file() for path in EXERCISES)
    assert leaks(ROOT / "exercises", SOLUTIONS) == []


def test_what_is_planted_is_found(tmp_path):
    example = SOLUTIONS[1]
    shutil.copytree(ROOT / "exercises" / example.stem, tmp_path / example.stem)
    secret, visible = split(example)
    # In HTML and JSON these look otherwise.
    quoted = sorted((line for line in set(secret) - set(visible) if '"' in line), key=len, reverse=True)
    test = next(line for line in quoted if line.startswith("check("))
    solution = next(line for line in quoted if not line.startswith("check("))
    for name, text in {
        "x.py": "x = 1\n",
        "marker.md": "### BEGIN SOLUTION\n",
        "once_more.txt": next(line for line in secret if tells(line) and line in visible),
        "test.txt": test,
        "page.md": f"<details>Try <code>{html.escape(solution)}</code></details>",
        "x.ipynb": json.dumps({"outputs": [{"text": [f"        {solution}  # to be removed\n"]}]}),
    }.items():
        assert not leaks(tmp_path, [example])
        (tmp_path / name).write_text(text)
        assert leaks(tmp_path, [example]), name
        (tmp_path / name).unlink()
