"""The course's notebooks: each test keeps one promise, and names every notebook that breaks it."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from repository import CHAPTERS, COURSE, EXERCISES, ROOT, SOLUTIONS, built, notebook, output_texts

from autograder.authoring import builder, whys
from autograder.authoring.answers import points_of
from autograder.authoring.colab import SOURCE, is_colab_cell
from autograder.authoring.sources import address
from autograder.sandbox.submissions.suspicious_words import ways_inside, words_of_sharing
from autograder.teaching import course_map


def dead_links(text: str, folder: Path) -> list[str]:
    """The relative links in a Markdown text that lead nowhere."""
    links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", text)
    return [link for link in links if "://" not in link and not (folder / link).exists()]


def test_scripts_notebooks_and_exercises_belong_together():
    assert "index" in {path.stem for path in COURSE} and len(CHAPTERS) > 10
    assert {path.with_suffix(".py") for path in (ROOT / "course").glob("*.ipynb")} == set(COURSE)
    assert {path.with_suffix(".py") for path in (ROOT / "solutions").glob("*/*.ipynb")} == set(SOLUTIONS)
    assert set((ROOT / "solutions").rglob("*.py")) == set(SOLUTIONS)
    assert {path.stem for path in SOLUTIONS} <= {path.stem for path in COURSE}
    assert set((ROOT / "exercises").rglob("*.ipynb")) == set(EXERCISES)


def test_notebooks_are_current():
    sources = COURSE + SOLUTIONS
    stale = [path.name for path in sources if builder.inputs(notebook(path)) != builder.inputs(built(path))]
    assert stale == [], "run `make notebooks`"


def test_the_page_of_all_whys_is_current_and_most_rest_on_a_figure():
    written = (ROOT / "docs/whys.md").read_text(encoding="utf-8")
    assert written == whys.page(ROOT), "run `make notebooks`"
    kinds = Counter(re.findall(r"\| (taken away|predicted|shown|documented) \|", written))
    assert kinds.total() >= 120 and kinds["taken away"] + kinds["predicted"] >= 60


@pytest.mark.slow
def test_exercises_are_what_nbgrader_makes():
    released, log = builder.release(SOLUTIONS, ROOT)
    assert all(released.values()), log
    for name, files in released.items():
        folder = ROOT / "exercises" / name
        found = [path for path in folder.rglob("*") if path.is_file() and path.parent.name[0] != "."]
        on_disk = {path.relative_to(folder): path.read_bytes() for path in found}
        assert on_disk == files, f"exercises/{name}: run `make notebooks`"


def test_chapters_were_run_from_top_to_bottom_and_show_no_errors_and_no_folders_of_a_machine():
    wrong = []
    for source in COURSE:
        for number, cell in enumerate(builder.code_cells(notebook(source)), 1):
            where, texts = f"{source.stem}: {cell.id}", output_texts(cell)
            mine = [path for path in (str(ROOT), str(Path.home()), sys.prefix) if len(path) > 1]
            wrong += [f"{where} was run out of order"] * (cell.execution_count != number)
            wrong += [f"{where} raised" for output in cell.outputs if output.output_type == "error"]
            wrong += [f"{where} has {path}" for text in texts for path in builder.ABSOLUTE_PATH.findall(text)]
            wrong += [f"{where} has {path}" for text in texts for path in mine if path in text]
    assert wrong == []


def test_solutions_and_exercises_hold_no_outputs():
    cells = [(path, cell) for path in SOLUTIONS + EXERCISES for cell in notebook(path).cells]
    ran = [(path, cell) for path, cell in cells if cell.get("outputs") or cell.get("execution_count")]
    assert [f"{path.name}: {cell.id}" for path, cell in ran] == []


def test_links_in_notebooks_and_pages_lead_somewhere():
    cells = [(path, cell) for path in COURSE + SOLUTIONS for cell in built(path).cells]
    texts = [(path, cell.source) for path, cell in cells if cell.cell_type == "markdown"]
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "data/LICENSES.md")]
    texts += [(path, path.read_text(encoding="utf-8")) for path in pages]
    assert [(path.name, link) for path, text in texts for link in dead_links(text, path.parent)] == []


def test_solutions_have_tests_and_light_headers_and_say_their_points_and_minutes():
    wrong = []
    for source in SOLUTIONS:
        text = source.read_text(encoding="utf-8")
        minutes = sum(map(int, re.findall(r"\*\w+, (\d+) minutes\.\*", text)))
        said = f"{sum(points_of(built(source)).values()):g} points, about {minutes} minutes."
        if '" role="test"\n' not in text or "nbgrader=" in text or said not in text:
            wrong.append(f"{source.name}: {said}")
    assert wrong == []


def test_what_these_look_for_is_found(tmp_path):
    (tmp_path / "here.md").touch()
    text = "[a](here.md#top) ![b](gone.png) [c](https://example.org) [d](also/gone.md)"
    assert dead_links(text, tmp_path) == ["gone.png", "also/gone.md"]
    for text in ("see /home/ada/x.py", "'/tmp/a.txt'", "(/Users/ada/x)", r"C:\Users\ada", "file=/srv/x"):
        assert builder.ABSOLUTE_PATH.findall(text), text
    for text in ("https://example.org/home/page", "a/b", "3 / 4", "course/01.ipynb", "</tmp>", "1/usr/2"):
        assert not builder.ABSOLUTE_PATH.findall(text), text


def test_the_first_cell_knows_where_the_notebook_is():
    wrong = []
    for path in COURSE + SOLUTIONS + EXERCISES:
        first, *others = notebook(path).cells
        folder = path.parent.relative_to(ROOT).as_posix().replace("solutions/", "exercises/")
        right = first.source == SOURCE.format(address=address(ROOT), folder=folder)
        if not (right and is_colab_cell(first)) or any(map(is_colab_cell, others)):
            wrong.append(path.name)
    assert wrong == []


def test_the_courses_own_answers_and_cells_have_no_signs():
    """Signs in a student's code that its counted costs, or what it shares, may be made up (test_roles.py)."""
    cells = [
        (path, cell.source)
        for path in EXERCISES
        for cell in builder.code_cells(notebook(path))
        if not cell.metadata.get("nbgrader", {}).get("locked")
    ]
    for path in [*SOLUTIONS, *(ROOT / "tests/answers").glob("*.py")]:
        parts = re.split(r"(?m)^(?=# %%)", path.read_text(encoding="utf-8"))
        # What is given is the author's own, and nobody looks for signs in it.
        cells += [(path, part) for part in parts if 'role="given"' not in part.partition("\n")[0]]
    assert len({path for path, _ in cells}) == 3 * len(SOLUTIONS)
    signs = [(path.name, ways_inside(cell) | words_of_sharing(cell)) for path, cell in cells]
    assert [(name, found) for name, found in signs if found] == []


def test_every_exercise_has_a_level_and_tests_that_a_student_can_run():
    maps = {name: course_map.chapter(name, ROOT / "course") for name in CHAPTERS}
    wrong = [name for name, found in maps.items() if len(found.levels) != len(found.tests)]
    wrong += [name for name, found in maps.items() if not set(found.levels) <= {"easy", "medium", "hard"}]
    wrong += [name for name, found in maps.items() if not all(found.tests.values())]
    assert wrong == []
