"""The front page: the map of the course, and the reader's own progress on it."""

import json
import os
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from repository import CHAPTERS, ROOT

from autograder.judging import progress
from autograder.measuring import store
from autograder.teaching import course_map

EXERCISE = "exercises/00_measuring/00_measuring.ipynb"


def index(root: Path) -> nbformat.NotebookNode:
    return nbformat.read(root / "course/index.ipynb", as_version=4)


def map_of(root: Path) -> str:
    """What the front page shows as its map."""
    (output,) = [output for cell in index(root).cells for output in cell.get("outputs", ())]
    return output.data["text/markdown"].replace("\N{NO-BREAK SPACE}", " ")


def run(notebook: nbformat.NotebookNode, folder: Path, cache: Path) -> None:
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}})
    client.execute(env={**os.environ, "XDG_CACHE_HOME": str(cache)})


def test_every_chapter_and_its_exercises_are_on_the_map():
    shown = map_of(ROOT)
    assert [name for name in CHAPTERS if f"]({name}.ipynb)" not in shown] == []
    assert [name for name in CHAPTERS if f"](../exercises/{name}/{name}.ipynb)" not in shown] == []
    assert "none passed yet" in shown and "●" not in shown, "it knows nothing of who built it"


def test_the_map_is_what_the_chapters_and_exercises_say(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT / "course")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for cell in index(ROOT).cells:
        if cell.cell_type == "code":
            exec(cell.source, {})
    printed = capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ").strip()
    assert printed == map_of(ROOT), "run `make notebooks ARGS=index`"


def test_a_chapter_without_its_times_is_refused(tmp_path):
    cells = [nbformat.v4.new_markdown_cell("# One\n\n**Time:** soon.")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "01_one.ipynb")
    with pytest.raises(ValueError, match="01_one must begin with"):
        course_map.chapter("01_one", tmp_path)


def test_exercises_that_are_not_there_yet_are_no_error(tmp_path, monkeypatch, capsys):
    (tmp_path / "course").mkdir()
    shutil.copy(ROOT / "course/01_tensor_creation.ipynb", tmp_path / "course")
    monkeypatch.chdir(tmp_path / "course")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    course_map.course_map({"01_tensor_creation": "lists"})
    shown = capsys.readouterr().out
    assert "01 · Creating tensors" in shown and "not fetched yet" in shown


def test_a_broken_file_counts_as_none(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert progress.passed() == {}
    store.write(progress.NAME, {"01_one": {"a_check": "2026-11-21"}})
    assert progress.passed() == {"01_one": {"a_check": "2026-11-21"}}
    store.path_of(progress.NAME).write_text("{")
    assert progress.passed() == {}


# Two of the exercises of chapter 00: one solved, one not.
ANSWERS = {
    "scores_costs": """\
def scores_costs(n, m, d):
    result = 4 * n * m
    least = 4 * d * (n + m) + result
    return {'operations': 3, 'allocated': 3 * result, 'least_bytes': least, 'flops': 2 * n * m * d}""",
    "seconds_per_call": "def seconds_per_call(*anything):\n    return 3",
}


@pytest.mark.slow
def test_what_passes_is_kept_here_and_shown_on_the_front_page(tmp_path):
    for folder in ("course", "exercises"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    cache = tmp_path / "cache"
    kept = cache / "autograder/progress.json"
    exercise = tmp_path / EXERCISE
    notebook = nbformat.read(exercise, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if cell.id.startswith(("setup", *ANSWERS))]
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in notebook.cells:
        cell.source = ANSWERS.get(cell.id, cell.source)

    run(notebook, exercise.parent, cache)
    known = json.loads(kept.read_text())
    assert [(chapter, list(tests)) for chapter, tests in known.items()] == [
        ("00_measuring", ["scores_costs_check"])
    ]

    page = index(tmp_path)
    run(page, tmp_path / "course", cache)
    nbformat.write(page, tmp_path / "course/index.ipynb")
    assert "**1 of " in map_of(tmp_path) and "●○○○○ 1 of 5" in map_of(tmp_path)
    assert "progress.json" in map_of(tmp_path)

    # The instructors' version of a notebook is nobody's progress.
    kept.unlink()
    solutions = tmp_path / "solutions/00_measuring"
    solutions.mkdir(parents=True)
    shutil.copy(exercise, solutions)
    run(notebook, solutions, cache)
    assert not kept.exists()
