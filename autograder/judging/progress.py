"""The reader's own progress: the test cells of exercises that have passed.

It is one small file on this machine, which its owner may read and delete. Nothing is sent anywhere.
"""

from collections import Counter, defaultdict
from datetime import date
from pathlib import Path

from ..files import json_in
from ..measuring import store
from ..roles import calls_of, exercise_of, parsed

NAME = "progress"
DONE, FAILED = {"passed", "not available"}, {"failed", "error"}

_failures: Counter[str] = Counter()  # by the source of a cell, in this session
_words: defaultdict[int, list[str]] = defaultdict(list)  # what the tests of a cell said, by its execution


def note_outcome(word: str) -> int:
    """Note what a test said; how often its cell has failed in this session, this time, too. Once all tests of
    a cell have passed in one run, the cell is kept as passed.

    Only cells of an exercise's notebook count, run in its folder by a Jupyter kernel.
    """
    from IPython import get_ipython

    shell = get_ipython()
    if getattr(shell, "kernel", None) is None:
        return 0
    words, source = _words[shell.execution_count], shell.history_manager.input_hist_raw[-1]
    words.append(word)
    if DONE.issuperset(words) and len(words) == tests_in(source):
        _keep(Path.cwd(), source)
    if word not in FAILED or not FAILED.isdisjoint(words[:-1]):
        return 0
    _failures[source] += 1
    return _failures[source]


def passed() -> dict[str, dict[str, str]]:
    """Chapter → its test cells that have passed, each with the day of the first time."""
    return store.read(NAME)


def exercises_in(notebook: Path) -> dict[str, dict[str, str]]:
    """The exercises of a notebook, each with its test cells that a student can run: nbgrader's id → source.

    Empty where there is no such notebook.
    """
    found: dict[str, dict[str, str]] = {}
    for cell in json_in(notebook).get("cells", []):
        about, source = cell["metadata"].get("nbgrader", {}), "".join(cell["source"]).strip()
        if about.get("solution"):
            found[about["grade_id"]] = {}
        elif about.get("grade") and tests_in(source) and (owner := exercise_of(about["grade_id"], found)):
            found[owner][about["grade_id"]] = source
    return found


def tests_in(source: str) -> int:
    """How many calls of ``check`` and ``race`` a cell has."""
    return len(calls_of(parsed(source), "check", "race"))


def _keep(folder: Path, source: str) -> None:
    if folder.parent.name == "solutions":  # the instructors' version
        return
    exercises = exercises_in(folder / f"{folder.name}.ipynb").values()
    mine = [name for tests in exercises for name, text in tests.items() if text == source.strip()]
    if mine:
        kept = passed()
        kept.setdefault(folder.name, {}).setdefault(mine[0], date.today().isoformat())
        store.write(NAME, kept)
