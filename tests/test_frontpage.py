"""The front page: the map of the course, and the reader's own progress on it."""

import shutil
from types import SimpleNamespace

import nbformat
import pytest
from repository import CHAPTERS, ROOT, notebook

from autograder.judging import progress
from autograder.measuring import store
from autograder.teaching import course_map

INDEX = notebook(ROOT / "course/index")


def test_every_chapter_and_its_exercises_are_on_the_map_as_they_are(tmp_path, monkeypatch, capsys):
    (output,) = [output for cell in INDEX.cells for output in cell.get("outputs", ())]
    shown = output.data["text/markdown"].replace("\N{NO-BREAK SPACE}", " ")
    assert [name for name in CHAPTERS if f"]({name}.ipynb)" not in shown] == []
    assert [name for name in CHAPTERS if f"](../exercises/{name}/{name}.ipynb)" not in shown] == []
    assert "none passed yet" in shown and "●" not in shown, "it knows nothing of who built it"
    monkeypatch.chdir(ROOT / "course")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for cell in INDEX.cells:
        if cell.cell_type == "code":
            exec(cell.source, {})
    printed = capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ").strip()
    assert printed == shown, "run `make notebooks ARGS=index`"


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


@pytest.mark.parametrize("place", ["exercises", "solutions"])
def test_what_passes_is_kept_but_not_in_the_instructors_version(tmp_path, monkeypatch, place):
    """In a kernel, and on the front page: tests/browser/test_class.py."""
    folder = shutil.copytree(ROOT / "exercises/00_measuring", tmp_path / place / "00_measuring")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tests = progress.exercises_in(folder / "00_measuring.ipynb")["scores_costs"]
    history = SimpleNamespace(input_hist_raw=[tests["scores_costs_check"]])
    for number, word in enumerate(("failed", "passed")):
        assert progress.passed() == {}
        shell = SimpleNamespace(kernel=True, execution_count=number, history_manager=history)
        monkeypatch.setattr("IPython.get_ipython", lambda shell=shell: shell)
        progress.note_outcome(word)
    kept = {chapter: list(names) for chapter, names in progress.passed().items()}
    assert kept == ({"00_measuring": ["scores_costs_check"]} if place == "exercises" else {})
    store.write(progress.NAME, None)
    store.path_of(progress.NAME).write_text("{")
    assert progress.passed() == {}, "a broken file counts as none"
