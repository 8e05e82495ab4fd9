"""The notebooks are what their scripts say, and the builder that makes them does what it promises."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import jupytext
import nbformat
import pytest

from autograder.__main__ import main
from autograder.authoring import builder
from autograder.authoring.answers import points_of
from autograder.authoring.headers import lighter
from autograder.teaching import scoreboard

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = builder.chapter_sources(ROOT)
SOLUTIONS = builder.solution_sources(ROOT)
# Called at the top of a cell, these show something.
SHOWING = {"print", "display", "compare"}


def stem(path: Path) -> str:
    return path.stem


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def shows_something(source: str) -> bool:
    """Whether a cell calls print, display or compare outside of functions and classes."""
    waiting: list[ast.AST] = list(ast.parse(source).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in SHOWING:
            return True
        waiting += ast.iter_child_nodes(node)
    return False


# Every script has its notebook, and the other way round.


def test_there_are_chapters_and_solutions():
    assert "index" in map(stem, CHAPTERS)
    assert SOLUTIONS


def test_every_notebook_has_a_script():
    chapters = {path.with_suffix(".py") for path in (ROOT / "course").glob("*.ipynb")}
    solutions = {path.with_suffix(".py") for path in (ROOT / "solutions").glob("*/*.ipynb")}
    assert chapters == set(CHAPTERS)
    assert solutions == set(SOLUTIONS)


def test_every_script_in_solutions_carries_its_folders_name():
    assert {path for path in (ROOT / "solutions").rglob("*.py")} == set(SOLUTIONS)


def test_every_solution_has_its_chapter_and_its_exercises():
    assert {path.stem for path in SOLUTIONS} <= {path.stem for path in CHAPTERS}
    exercises = {path for path in (ROOT / "exercises").rglob("*.ipynb")}
    assert exercises == {builder.exercise_notebook(path, ROOT) for path in SOLUTIONS}


# Drift: the notebooks hold what the scripts say.


@pytest.mark.parametrize("source", CHAPTERS + SOLUTIONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_notebook_is_current(source):
    built, fresh = read(source.with_suffix(".ipynb")), builder.build(source)
    for old, new in zip(builder.inputs(built)["cells"], builder.inputs(fresh)["cells"], strict=False):
        assert old == new, f"{source.name}: run `make notebooks`"
    assert builder.is_current(source.with_suffix(".ipynb"), fresh), f"{source.name}: run `make notebooks`"


@pytest.mark.slow
def test_exercises_are_what_nbgrader_makes():
    released = builder.release(SOLUTIONS, ROOT)
    assert not released.failed, released.log
    for name, files in released.files.items():
        folder = ROOT / "exercises" / name
        on_disk = {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and ".ipynb_checkpoints" not in path.parts
        }
        assert set(on_disk) == set(files), name
        for path, content in files.items():
            assert on_disk[path] == content, f"exercises/{name}/{path}: run `make notebooks`"


# Chapters carry their outputs.


@pytest.mark.parametrize("source", CHAPTERS, ids=stem)
def test_chapter_was_run_from_top_to_bottom(source):
    cells = [cell for cell in read(source.with_suffix(".ipynb")).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


@pytest.mark.parametrize("source", CHAPTERS, ids=stem)
def test_chapter_has_its_outputs(source):
    for cell in read(source.with_suffix(".ipynb")).cells:
        if cell.cell_type == "code":
            assert cell.outputs or not shows_something(cell.source), f"{cell.id} shows nothing"
            for output in cell.outputs:
                assert output.output_type != "error", f"{cell.id}: {output.get('evalue')}"


@pytest.mark.parametrize("source", CHAPTERS, ids=stem)
def test_chapter_has_no_absolute_paths(source):
    for cell in read(source.with_suffix(".ipynb")).cells:
        for text in builder.output_texts(cell):
            assert not builder.absolute_paths(text), cell.id
            for mine in (str(ROOT), str(Path.home()), sys.prefix):
                assert len(mine) < 2 or mine not in text, cell.id


@pytest.mark.parametrize("source", SOLUTIONS, ids=stem)
def test_solutions_and_exercises_hold_no_outputs(source):
    for notebook in (source.with_suffix(".ipynb"), builder.exercise_notebook(source, ROOT)):
        for cell in read(notebook).cells:
            assert not cell.get("outputs"), f"{notebook.name}: {cell.id}"
            assert cell.get("execution_count") is None


# Links.


def dead_links(text: str, folder: Path) -> list[str]:
    """The relative links in a Markdown text that lead nowhere."""
    links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", text)
    return [link for link in links if "://" not in link and not (folder / link).exists()]


@pytest.mark.parametrize("source", CHAPTERS + SOLUTIONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_links_in_notebooks_lead_somewhere(source):
    for cell in builder.build(source).cells:
        if cell.cell_type == "markdown":
            assert not dead_links(cell.source, source.parent), cell.id


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "data/LICENSES.md"])
def test_links_in_pages_lead_somewhere(page):
    path = ROOT / page
    assert not dead_links(path.read_text(encoding="utf-8"), path.parent)


# Headers and points.


@pytest.mark.parametrize("source", SOLUTIONS, ids=stem)
def test_every_solution_has_tests_and_light_headers(source):
    script = source.read_text(encoding="utf-8")
    assert '" role="test"\n' in script
    assert "nbgrader=" not in script, f"{source.name}: run `make notebooks`"


# The tests above can fail.


def test_dead_links_are_found(tmp_path):
    (tmp_path / "here.md").touch()
    text = "[a](here.md#top) ![b](gone.png) [c](https://example.org) [d](also/gone.md)"
    assert dead_links(text, tmp_path) == ["gone.png", "also/gone.md"]


def test_what_shows_something():
    assert shows_something("print(1)")
    assert shows_something("for i in range(3):\n    with open('f') as f:\n        print(i)")
    assert not shows_something("def f():\n    print(1)\nclass C:\n    print = None\ng = lambda: print(2)")


def test_absolute_paths_are_found():
    for text in ("see /home/ada/x.py", "'/tmp/a.txt'", "(/Users/ada/x)", r"C:\Users\ada", "file=/srv/x"):
        assert builder.absolute_paths(text), text
    for text in ("https://example.org/home/page", "a/b", "3 / 4", "course/01.ipynb", "</tmp>", "1/usr/2"):
        assert not builder.absolute_paths(text), text


def test_pictures_within_html_are_left_as_they_are(tmp_path):
    picture = f'<img src="data:image/png;base64,{"A/" * 200_000}/home/ada/x/site-packages/y">'
    html = f"<details>{picture}{tmp_path}/course</details>"
    output = nbformat.v4.new_output("display_data", {"text/html": html})
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", outputs=[output])])
    builder.tidy_outputs(notebook, tmp_path)
    (cell,) = notebook.cells
    assert cell.outputs[0].data["text/html"] == f"<details>{picture}course</details>"
    assert builder.output_texts(cell) == ["<details><img >course</details>"]


@pytest.mark.parametrize("source", SOLUTIONS, ids=stem)
def test_an_exercise_says_its_points_and_minutes(source):
    text = source.read_text(encoding="utf-8")
    minutes = sum(map(int, re.findall(r"\*\w+, (\d+) minutes\.\*", text)))
    points = sum(points_of(builder.build(source)).values())
    assert f"{points:g} points, about {minutes} minutes." in text


# The builder, on a course of its own.

SOLUTION = """\
# %% id="twice" role="answer"
def twice(x):
    ### BEGIN SOLUTION
    return x + x  # the answer
    ### END SOLUTION


# %% id="twice_check" role="test" points=1
assert twice(1) == 2
### BEGIN HIDDEN TESTS
assert twice("ab") == "abab"
### END HIDDEN TESTS
"""


CHECKED = """\
# %% id="setup" role="given"
import torch

# %% id="twice_hidden" role="test"
check(twice, points=2)
"""


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course with one chapter and one exercise."""
    for folder in ("course", "solutions/01_one"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project.urls]\nRepository = "https://github.com/ada/course"\n')
    (tmp_path / "course/01_one.py").write_text(
        "# %% [markdown]\n# # One\n\n# %%\nimport os\n\nprint(os.path.basename(os.getcwd()))\n\n# %%\n1 + 1\n"
    )
    (tmp_path / "solutions/01_one/01_one.py").write_text(SOLUTION)
    (tmp_path / "nbgrader_config.py").write_text((ROOT / "nbgrader_config.py").read_text())
    return tmp_path


def notebooks(course: Path) -> dict[Path, tuple[int, bytes]]:
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in course.rglob("*.ipynb")}


def test_building_twice_gives_the_same(course):
    source = course / "course/01_one.py"
    fresh = builder.build(source)
    assert fresh == builder.build(source)
    assert fresh.metadata.kernelspec == builder.KERNEL
    assert [cell.id for cell in fresh.cells] == ["colab", "cell-0", "cell-1", "cell-2"]
    solution = builder.build(course / "solutions/01_one/01_one.py")
    assert [cell.id for cell in solution.cells] == ["colab", "twice", "twice_check"]


def test_a_script_that_jupyterlab_wrote_gives_the_same(course):
    source = course / "course/01_one.py"
    fresh = builder.build(source)
    jupytext.write(fresh, source, fmt="py:percent")
    assert "google.colab" in source.read_text()
    assert builder.build(source) == fresh


def test_a_course_without_an_address_is_refused(course, capsys, monkeypatch):
    (course / "pyproject.toml").write_text("[project]\n")
    monkeypatch.chdir(course)
    assert main(["notebooks"]) == 1
    assert "pyproject.toml lacks a line `Repository = " in capsys.readouterr().err


def test_every_change_of_a_script_is_noticed(course):
    source, notebook = course / "course/01_one.py", course / "course/01_one.ipynb"
    assert not builder.is_current(notebook, builder.build(source))
    nbformat.write(builder.build(source), notebook)
    assert builder.is_current(notebook, builder.build(source))
    for old, new in [("1 + 1", "1 + 2"), ("# %%\n1", '# %% tags=["x"]\n1'), ("[markdown]", "[raw]")]:
        changed = course / "course/changed.py"
        changed.write_text(source.read_text().replace(old, new))
        assert changed.read_text() != source.read_text()
        assert not builder.is_current(notebook, builder.build(changed)), new


def test_two_cells_with_one_id_are_refused(course):
    source = course / "solutions/01_one/01_one.py"
    source.write_text(SOLUTION.replace("twice_check", "twice"))
    with pytest.raises(builder.BuildError, match=r"01_one\.py: more than one cell has the id twice"):
        builder.build(source)


def test_a_text_with_another_sum_of_points_is_refused(course):
    source = course / "solutions/01_one/01_one.py"
    head = "# %% [markdown]\n# The exercise. {} points, about 10 minutes.\n\n"
    source.write_text(head.format("1") + SOLUTION)
    builder.build(source)
    source.write_text(head.format("1") + SOLUTION.replace("points=1", "points=1.5"))
    with pytest.raises(builder.BuildError, match=r"its text says 1 points, and its tests give 1\.5"):
        builder.build(source)


# Headers say an id and a role; nbgrader's metadata is made of them.


def cells_of(folder: Path, script: str) -> list[nbformat.NotebookNode]:
    source = folder / "some.py"
    source.write_text(script)
    return builder.build(source).cells


def test_nbgraders_metadata_comes_from_the_role(course):
    given, answer, test = cells_of(course, f'# %% id="setup" role="given"\nimport torch\n\n{SOLUTION}')
    common = {"schema_version": 3, "task": False}
    assert given.metadata == {
        "nbgrader": {"grade_id": "setup", "grade": False, "locked": True, "solution": False, **common}
    }
    assert answer.metadata == {
        "nbgrader": {"grade_id": "twice", "grade": False, "locked": False, "solution": True, **common}
    }
    assert test.metadata == {
        "nbgrader": {
            "grade_id": "twice_check", "grade": True, "locked": True, "solution": False, "points": 1, **common
        }
    }  # fmt: skip
    assert [cell.id for cell in (given, answer, test)] == ["setup", "twice", "twice_check"]


def test_what_else_a_header_says_is_kept(course):
    plain, tagged = cells_of(course, '# %%\n1\n\n# %% tags=["x"] id="setup" role="given"\n2\n')
    assert (plain.id, plain.metadata) == ("cell-0", {})
    assert tagged.metadata.tags == ["x"] and set(tagged.metadata) == {"nbgrader", "tags"}


@pytest.mark.parametrize(
    ("header", "code", "points"),
    [
        ("", "check(f, like=g, on=h, points=2)", "2"),
        ("", "def g():\n    return 1\n\n\nrace(\n    f, against=g, on=h, points=1.5\n)  # fast", "1.5"),
        ("", "check(f, points=3.0)\n### END HIDDEN TESTS", "3"),
        (" points=2", "assert f(1) == 2", "2"),
        (" points=0.5", "check(f)", "0.5"),
        (" points=1", "%time f(1)", "1"),
    ],
)
def test_a_test_gives_the_points_of_its_last_line(course, header, code, points):
    (cell,) = cells_of(course, f'# %% id="f_check" role="test"{header}\n{code}\n')
    assert str(cell.metadata.nbgrader.points) == points


CHECK = "check(f, points=1)"
# nbgrader's own metadata: a test; an answer that a person grades, and a task, which the course does not have.
TEST = '{"grade": true, "grade_id": "t", "locked": true, "points": 1, "solution": false, "task": false}'
MANUAL = '{"grade": true, "grade_id": "t", "locked": false, "points": 1, "solution": true, "task": false}'
TASK = '{"grade": false, "grade_id": "t", "locked": true, "points": 1, "solution": false, "task": true}'


@pytest.mark.parametrize(
    ("header", "code", "message"),
    [
        # no points, points twice, points of another kind
        ('id="t" role="test"', "assert f(1)", "has no check or race with points="),
        ('id="t" role="test"', "check(f)", "has no check or race with points="),
        ('id="t" role="test"', "%time check(f, points=1)", "as Python, has no check or race with points="),
        ('id="t" role="test"', "", "has no check or race with points="),
        ('id="t" role="test" points=1', CHECK, "both its code and its header have points="),
        ('id="t" role="test"', "check(f, points=ONE)", "points must be a number above 0, not 'ONE'"),
        ('id="t" role="test"', "check(f, points=-1)", "points must be a number above 0, not '-1'"),
        ('id="t" role="test"', "check(f, points=True)", "points must be a number above 0, not True"),
        ('id="t" role="test"', "check(f, points=1e999)", "points must be a number above 0, not inf"),
        ('id="t" role="test" points=0', "f(1)", "points must be a number above 0, not 0"),
        ('id="t" role="test" points="2"', "f(1)", "points must be a number above 0, not '2'"),
        # points that nbgrader would not see
        ('id="t" role="test"', f"{CHECK}\n{CHECK}", "one check or race with points=, as its last line"),
        (
            'id="t" role="test"',
            f"def f():\n    {CHECK}\n\n{CHECK}",
            "one check or race with points=, as its last",
        ),
        ('id="t" role="test"', f"{CHECK}\nprint()", "one check or race with points=, as its last line"),
        ('id="t" role="test"', f"for f in g:\n    {CHECK}", "one check or race with points=, as its last"),
        ('id="t" role="test"', f"done = {CHECK}", "one check or race with points=, as its last line"),
        # points where there is no test
        ("", CHECK, 'its code gives points, but its header has no role="test"'),
        ('tags=["x"]', f"def later():\n    {CHECK}", 'gives points, but its header has no role="test"'),
        ('id="t" role="given"', CHECK, "only a test gives points, and its role is given"),
        ('id="t" role="answer" points=1', "f(1)", "only a test gives points, and its role is answer"),
        # no role, no id
        ('id="t" role="tset"', CHECK, "must have a role: given, answer, test; 'tset' is none"),
        ('id="t" role=["test"]', CHECK, r"must have a role: given, answer, test; \['test'\] is none"),
        ('id="t"', CHECK, "must have a role: given, answer, test; None is none"),
        ("points=1", "f(1)", "must have a role: given, answer, test; None is none"),
        ('role="test"', CHECK, "must have an id, in quotation marks"),
        ('id=3 role="test"', CHECK, "must have an id, in quotation marks"),
        ('id="" role="test"', CHECK, "must have an id, in quotation marks"),
        ('[markdown] id="t" role="given"', "# Text.", "it is text, and only code has a role"),
        # what Jupytext cannot read, and what nbgrader knows besides
        ('id="t" role=test', CHECK, 'its header cannot be read: id="t" role=test'),
        (f"nbgrader={MANUAL}", "f(1)", 'must say id="…" role="…" in place of nbgrader'),
        (f"nbgrader={TASK}", "f(1)", 'must say id="…" role="…" in place of nbgrader'),
        (f'id="t" role="test" nbgrader={TEST}', CHECK, 'must say id="…" role="…" in place of nbgrader'),
        ('nbgrader={"grade": true, "grade_id": "t"}', CHECK, 'must say id="…" role="…" in place of nbgrader'),
    ],
)
def test_a_header_that_says_something_wrong_ends_the_build(course, header, code, message):
    script = f"# %%\nimport torch\n\n# %% {header}\n{code}\n"
    with pytest.raises(builder.BuildError, match=message) as refused:
        cells_of(course, script)
    assert re.match(r"some\.py: cell \S+ \(.*\): [^\n]+$", str(refused.value))


# Jupytext writes what is in the notebook into the script: nbgrader's own metadata, where it is not light.


def in_jupyterlab(course: Path, opened: str, change: Callable[[list], None]) -> None:
    """Open a file of the solution as a notebook, change its cells and save, as JupyterLab does."""
    manager = jupytext.TextFileContentsManager(root_dir=str(course))
    path = f"solutions/01_one/01_one{opened}"
    content = manager.get(path, content=True, type="notebook")["content"]
    change(content.cells)
    manager.save({"type": "notebook", "format": "json", "content": content}, path)


@pytest.fixture
def pair(course, monkeypatch):
    """The course's solution, with its notebook beside it, and with the course's real settings of Jupytext."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(course / ".jupyter"))  # the signatures of notebooks
    shutil.copy(ROOT / "pyproject.toml", course)
    script = course / "solutions/01_one/01_one.py"
    nbformat.write(builder.build(script), script.with_suffix(".ipynb"))
    return script


@pytest.mark.parametrize("opened", [".py", ".ipynb"])
def test_headers_stay_light_when_jupyterlab_saves(course, pair, opened):
    built = builder.build(pair)

    def change(cells):
        cells[-1].source += "\n# changed"

    in_jupyterlab(course, opened, change)
    assert pair.read_text() == f"{SOLUTION}# changed\n"
    change(built.cells)
    assert builder.build(pair) == built


def test_a_cell_marked_in_jupyterlab_is_built(course, pair):
    """nbgrader's toolbar writes its own metadata into a cell, which here is a new one."""
    data = {"grade": True, "grade_id": "twice_more", "locked": True, "points": 1, "solution": False}

    def change(cells):
        cells.append(nbformat.v4.new_code_cell("check(twice, points=2)", metadata={"nbgrader": data}))

    in_jupyterlab(course, ".ipynb", change)
    assert "twice_more" in pair.read_text() and 'id="twice_more"' not in pair.read_text()
    assert builder.build(pair).cells[-1].metadata.nbgrader == {
        **data, "points": 2, "schema_version": 3, "task": False
    }  # fmt: skip
    assert lighter(pair.read_text()).endswith('\n# %% id="twice_more" role="test"\ncheck(twice, points=2)\n')


@pytest.mark.parametrize("points", [1, 1.5])
def test_headers_that_jupytext_made_heavy_give_the_same(course, pair, points, monkeypatch):
    """`jupytext --sync` takes the notebook, if it is younger than the script."""
    from jupytext.cli import jupytext as command

    pair.write_text(SOLUTION.replace("points=1", f"points={points}") + "\n" + CHECKED)
    built = builder.build(pair)
    notebook = pair.with_suffix(".ipynb")
    nbformat.write(built, notebook)
    os.utime(pair, (0, 0))
    light = pair.read_text()
    monkeypatch.chdir(course)
    command(["--sync", str(notebook)])
    heavy = pair.read_text()
    assert heavy.count("nbgrader={") == 4 and "role=" not in heavy
    assert builder.build(pair) == built
    assert lighter(heavy).endswith(light) and lighter(light) == light


@pytest.mark.slow
def test_make_notebooks_brings_light_headers_back(course, pair, capsys):
    (course / "course/01_one.py").unlink()
    assert builder.make_notebooks(course) == 0
    before = notebooks(course)
    capsys.readouterr()
    jupytext.write(builder.build(pair), pair, fmt="py:percent")
    assert "nbgrader={" in pair.read_text()
    assert builder.make_notebooks(course) == 0
    assert notebooks(course) == before
    assert pair.read_text().endswith(SOLUTION)
    said = "solutions/01_one/01_one.py: nbgrader's metadata in headers became id= and role="
    assert said in capsys.readouterr().out
    assert builder.make_notebooks(course) == 0
    assert said not in capsys.readouterr().out


def test_a_folder_outside_the_course_is_refused(tmp_path, course):
    assert builder.find_root(course / "solutions/01_one") == course
    with pytest.raises(builder.BuildError, match="not inside"):
        builder.find_root(Path(tmp_path.anchor))


@pytest.mark.slow
def test_build_and_build_again(course, capsys):
    assert builder.make_notebooks(course) == 0
    chapter = read(course / "course/01_one.ipynb")
    assert [cell.execution_count for cell in builder.code_cells(chapter)] == [1, 2, 3]
    assert chapter.cells[2].outputs[0].text == "course\n"
    assert chapter.cells[3].outputs[0].data["text/plain"] == "2"
    assert chapter.metadata == {"kernelspec": builder.KERNEL, "language_info": builder.LANGUAGE}
    assert all(not cell.metadata for cell in chapter.cells[1:])
    exercise = (course / "exercises/01_one/01_one.ipynb").read_text()
    assert "the answer" not in exercise and "abab" not in exercise and "twice(1) == 2" in exercise
    assert {path.suffix for path in (course / "exercises").rglob("*") if path.is_file()} == {".ipynb"}
    assert not list(course.glob("*.db"))
    assert "course/01_one.ipynb" in capsys.readouterr().out

    before = notebooks(course)
    assert builder.make_notebooks(course) == 0
    assert notebooks(course) == before
    assert "course/01_one.ipynb" not in capsys.readouterr().out

    assert builder.make_notebooks(course, ["01"]) == 0
    after = notebooks(course)
    rebuilt = {path.relative_to(course).as_posix() for path in after if after[path][0] != before[path][0]}
    assert rebuilt == {"course/01_one.ipynb"}
    assert after[course / "course/01_one.ipynb"][1] == before[course / "course/01_one.ipynb"][1]


@pytest.mark.parametrize("page", builder.PAGES)
def test_a_page_about_all_chapters_is_built_again_after_a_chapter_changed(course, capsys, page):
    (course / "course" / f"{page}.py").write_text("# %%\n1 + 1\n")
    assert builder.make_notebooks(course) == 0
    capsys.readouterr()
    assert builder.make_notebooks(course) == 0
    assert f"course/{page}.ipynb" not in capsys.readouterr().out
    chapter = course / "course" / "01_one.py"
    chapter.write_text(chapter.read_text() + "\n# %%\n3 + 3\n")
    assert builder.make_notebooks(course) == 0
    assert f"course/{page}.ipynb" in capsys.readouterr().out


PAIR = '{"a": torch.neg, "b": torch.neg}, inputs=lambda generator, device: torch.ones(9)'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ('behaviour("Z9", "It is so.", True)', "There is no claim 'Z9'."),
        (f'compare("add", {PAIR}, claim="A2", only="cpu")', "A2 is about cuda, and 'add' runs on cpu only."),
        ('behaviour("C3", "It moves.", True, when="it rains")', "'it rains' has cells on one side only."),
        (f'compare("add", {PAIR}, claim="C3")', "so the figure of 'add' decides nothing."),
    ],
)
def test_what_decides_no_claim_ends_make_notebooks_with_one_sentence(course, cell, sentence):
    (course / "course/01_one.py").write_text(
        f"# %%\nimport torch\nfrom autograder import behaviour, compare\n\n{cell}\n"
    )
    (course / "README.md").write_text(f"{scoreboard.BEGIN}\n{scoreboard.END}\n")
    command = [sys.executable, "-m", "autograder", "notebooks"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "AUTOGRADER_SECONDS": "0.01"}
    done = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.strip()]
    assert line.startswith("error: ") and sentence in line


# Outputs are kept where the code is the same.


@pytest.fixture
def ran(course, monkeypatch):
    """The course with a chapter that has run, though without the cell for Colab; nothing can run now."""
    (course / "solutions/01_one/01_one.py").unlink()
    path = course / "course/01_one.ipynb"
    notebook = builder.build(course / "course/01_one.py")
    del notebook.cells[0]
    for number, cell in enumerate(builder.code_cells(notebook), 1):
        cell.execution_count = number
        cell.outputs = [
            nbformat.v4.new_output("execute_result", {"text/plain": "kept"}, execution_count=number)
        ]
    nbformat.write(notebook, path)

    def execute(*_):
        raise builder.BuildError("was run")

    monkeypatch.setattr(builder, "execute", execute)
    return course


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),  # the cell for Colab alone
        ("# # One", "# # Number one"),
        ("# %%\nimport os", "# %% [markdown]\n# A new paragraph.\n\n# %%\nimport os"),
        ("# %% [markdown]\n# # One\n\n", ""),
        ("# %%\n1 + 1", '# %% tags=["x"]\n1 + 1'),
    ],
)
def test_a_chapter_with_the_same_code_keeps_its_outputs(ran, capsys, old, new):
    script = ran / "course/01_one.py"
    script.write_text(script.read_text().replace(old, new))
    assert builder.make_notebooks(ran) == 0
    assert builder.is_current(ran / "course/01_one.ipynb", builder.build(script))
    colab, *others = builder.code_cells(read(ran / "course/01_one.ipynb"))
    assert (colab.execution_count, colab.outputs) == (1, [])
    assert [cell.execution_count for cell in others] == [2, 3]
    assert [cell.outputs[0].execution_count for cell in others] == [2, 3]
    assert [cell.outputs[0].data["text/plain"] for cell in others] == ["kept", "kept"]

    # The address of the course is not code either; and what is current is not written again.
    pyproject = ran / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace("ada/", "bob/"))
    assert builder.make_notebooks(ran) == 0
    assert "github.com/bob/course" in (ran / "course/01_one.ipynb").read_text()
    before = notebooks(ran)
    assert builder.make_notebooks(ran) == 0
    assert notebooks(ran) == before
    assert builder.make_notebooks(ran, ["01"]) == builder.make_notebooks(ran, everything=True) == 1
    assert capsys.readouterr().err.count("was run") == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1 + 1", "1 + 2"),
        ("# %%\n1 + 1\n", ""),
        ("# %%\n1 + 1", "# %%\n2\n\n# %%\n1 + 1"),
        ("# %%\n1 + 1", "# %% [raw]\n1 + 1"),
    ],
)
def test_a_chapter_with_other_code_runs(ran, capsys, old, new):
    script = ran / "course/01_one.py"
    script.write_text(script.read_text().replace(old, new))
    before = notebooks(ran)
    assert builder.make_notebooks(ran) == 1
    assert "was run" in capsys.readouterr().err
    assert notebooks(ran) == before


def test_outputs_of_another_run_are_not_kept(ran, capsys):
    """Cells run out of order, an error, a folder of this machine: somebody worked in the notebook."""
    path = ran / "course/01_one.ipynb"
    whole = read(path)
    error = nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[])
    here = nbformat.v4.new_output("stream", text="see /home/ada/x")
    for change in (
        {"execution_count": 5},
        {"execution_count": None},
        {"outputs": [error]},
        {"outputs": [here]},
    ):
        notebook = deepcopy(whole)
        notebook.cells[-1].update(change)
        nbformat.write(notebook, path)
        assert builder.make_notebooks(ran) == 1, change
        assert "was run" in capsys.readouterr().err, change


@pytest.mark.slow
def test_one_broken_exercise_does_not_hold_up_the_others(course, capsys):
    (course / "course/01_one.py").unlink()
    broken = course / "solutions/02_two/02_two.py"
    broken.parent.mkdir()
    broken.write_text(SOLUTION.replace("    ### END SOLUTION\n", ""))
    twice = course / "solutions/03_three/03_three.py"
    twice.parent.mkdir()
    twice.write_text(SOLUTION.replace("twice_check", "twice"))
    assert builder.make_notebooks(course) == 1
    assert [path.name for path in (course / "exercises").iterdir()] == ["01_one"]
    message = capsys.readouterr().err
    assert "03_three.py: more than one cell has the id twice" in message
    assert "nbgrader made nothing of 02_two" in message and "no end solution statement found" in message
    assert "Traceback" not in message


@pytest.mark.slow
def test_a_cell_that_raises_stops_its_notebook(course, capsys):
    (course / "solutions/01_one/01_one.py").unlink()
    script = course / "course/01_one.py"
    script.write_text(script.read_text() + '\n# %% tags=["raises-exception"]\nx = 1\nint("three")\n')
    assert builder.make_notebooks(course) == 1
    assert not notebooks(course)
    message = capsys.readouterr().err
    assert "course/01_one.ipynb: cell cell-3" in message and """line 'int("three")'""" in message
    assert "ValueError: invalid literal for int() with base 10: 'three'" in message


@pytest.mark.slow
def test_outputs_hold_no_folders_of_this_machine(course, capsys):
    (course / "solutions/01_one/01_one.py").unlink()
    script = course / "course/01_one.py"
    script.write_text("# %%\nimport os, warnings\nprint(os.getcwd())\nwarnings.warn('careful')\n")
    assert builder.make_notebooks(course, ["01"]) == 0
    shown = "".join(builder.output_texts(read(course / "course/01_one.ipynb").cells[1]))
    assert shown.startswith("course\n<cell>:3: UserWarning: careful\n")

    script.write_text("# %%\nprint('see /home/ada/notes.txt')\n")
    assert builder.make_notebooks(course, ["01"]) == 1
    assert "absolute path, /home/ada" in capsys.readouterr().err
    assert "/home/ada" not in (course / "course/01_one.ipynb").read_text()


@pytest.mark.slow
def test_record_runs_the_chapters_and_keeps_the_notebooks(course, capsys):
    script = course / "course/01_one.py"
    script.write_text(
        "# %%\nimport os, pathlib\n"
        'device = \'{"name": "Abacus", "kind": "cpu", "torch": "2", "date": ""}\'\n'
        'content = f\'{{"device": {device}, "timings": {{}}}}\'\n'
        "pathlib.Path(os.environ['AUTOGRADER_RECORD'], 'device.json').write_text(content)\n"
    )
    assert builder.record(course) == 0
    assert (course / "data/timings/device.json").is_file()
    assert not notebooks(course)
    printed = capsys.readouterr().out
    assert (
        "wrote data/timings/device.json\n  the device's " in printed
        and "issues/new?template=claim" in printed
    )
    assert "| Abacus |" in (course / "data/timings/README.md").read_text()


# The command line.


def test_help_does_not_import_torch():
    code = (
        "import runpy, sys\n"
        "sys.argv = ['autograder', '--help']\n"
        "try:\n    runpy.run_module('autograder', run_name='__main__')\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules, 'torch was imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for command in ("notebooks", "links", "record", "rehearsal"):
        assert command in done.stdout


def test_unknown_chapters_and_commands_are_refused(course, capsys, monkeypatch):
    monkeypatch.chdir(course)
    assert main(["notebooks", "99"]) == 1
    message = capsys.readouterr().err
    assert "no chapter is called '99'" in message and "01_one" in message
    for wrong in (["notebooks", "--nonsense"], ["nonsense"], []):
        with pytest.raises(SystemExit) as end:
            main(wrong)
        assert end.value.code == 2, wrong


def test_rehearsal_gets_its_own_arguments(monkeypatch):
    from autograder.authoring import rehearsal

    monkeypatch.setattr(rehearsal, "main", lambda argv: len(argv))
    assert main(["rehearsal", "--students", "3", "--help"]) == 3
