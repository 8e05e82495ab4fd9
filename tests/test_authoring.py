"""The builder, on a course of its own: what it makes of scripts, what it keeps, and what it refuses."""

import re
import shutil
from copy import deepcopy
from pathlib import Path
from unittest.mock import Mock

import jupytext
import nbformat
import pytest
from repository import ROOT, output_texts

from autograder.__main__ import main
from autograder.authoring import builder, whys
from autograder.authoring.headers import lighter
from autograder.files import write_whole
from autograder.teaching import remember
from autograder.teaching.scripts import CAUSES_MIME


def test_pictures_within_html_are_left_as_they_are(tmp_path):
    picture = f'<img src="data:image/png;base64,{"A/" * 200_000}/home/ada/x/site-packages/y">'
    html = f"<details>{picture}{tmp_path}/course</details>"
    output = nbformat.v4.new_output("display_data", {"text/html": html})
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", outputs=[output])])
    builder.tidy_outputs(made, tmp_path)
    assert made.cells[0].outputs[0].data["text/html"] == f"<details>{picture}course</details>"
    assert output_texts(made.cells[0]) == ["<details><img >course</details>"]


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
WHERE = "print(os.path.basename(os.getcwd()))"
CHAPTER = f"# %% [markdown]\n# # One\n\n# %%\nimport os\n\n{WHERE}\n\n# %%\n1 + 1\n"
GIVEN = '# %% tags=["x"] id="setup" role="given"\nimport torch\n'


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course with one chapter and one exercise."""
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    address = '[project.urls]\nRepository = "https://github.com/ada/course"\n'
    (tmp_path / "pyproject.toml").write_text(address)
    for name, script in {"course/01_one.py": CHAPTER, "solutions/01_one/01_one.py": SOLUTION}.items():
        write_whole(tmp_path / name, script)
    return tmp_path


read = lambda path: nbformat.read(path, as_version=4)


def notebooks(course: Path) -> dict[Path, tuple[int, bytes]]:
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in course.rglob("*.ipynb")}


def test_building_twice_gives_the_same_also_of_a_script_that_jupyterlab_wrote(course):
    source = course / "course/01_one.py"
    fresh = builder.build(source)
    assert fresh == builder.build(source) and fresh.metadata == builder.METADATA
    assert [cell.id for cell in fresh.cells] == ["colab", "cell-0", "cell-1", "cell-2"]
    jupytext.write(fresh, source, fmt="py:percent")
    assert "google.colab" in source.read_text() and builder.build(source) == fresh


WHYS = {  # what stands beside a Why
    "": "# **Why.** Because.\n\n# %%\n1 + 1\n",
    "documented": "# **Why.** Because, [says torch](https://pytorch.org).\n",
    "shown": "# **Why?** Because:\n\n# %%\nassert True\n",
    "predicted": '# %%\ncompare(because="prices")\n\n# %%\n1\n\n# %% [markdown]\n# **Why.** Because.\n',
    "taken away": '# **Why not?** Because.\n\n# %%\ncompare(because=["prices", without("x")])\n',
}


@pytest.mark.parametrize("kind", WHYS)
def test_a_why_that_nothing_shows_is_refused_and_the_others_are_listed(course, kind):
    source, notebook = course / "course/01_one.py", course / "course/01_one.ipynb"
    source.write_text(f"# %%\nassert True\n\n# %% [markdown]\n# ## A heading parts them\n#\n{WHYS[kind]}")
    if not kind:
        with pytest.raises(
            builder.BuildError, match=r"01_one.py: nothing shows why: 'Because.' It needs because="
        ):
            builder.build(source)
        return
    made = builder.build(source)
    told = [{"cause": "x", "device": "cpu", "share": 0.93}]
    for cell in builder.code_cells(made):
        cell.outputs = [nbformat.v4.new_output("display_data", {CAUSES_MIME: told})]
    nbformat.write(made, notebook)
    share = "x: 93%" if kind in ("predicted", "taken away") else ""
    assert f" | {kind} | {share} |" in whys.page(course) and f"There are 1: {kind} 1." in whys.page(course)


# Headers say an id and a role; nbgrader's metadata is made of them.


def cells_of(folder: Path, script: str) -> list[nbformat.NotebookNode]:
    source = folder / "some.py"
    source.write_text(script)
    return builder.build(source).cells


def test_a_test_gives_the_points_of_its_last_line_and_their_sum_is_what_the_text_says(course):
    script = f"# %% [markdown]\n# The exercise. 1 points, about 10 minutes.\n\n{SOLUTION}"
    cells_of(course, script)
    with pytest.raises(builder.BuildError, match=r"its text says 1 points, and its tests give 1\.5"):
        cells_of(course, script.replace("points=1", "points=1.5"))
    for header, code, points in [
        ("", "check(f, like=g, on=h, points=2)", "2"),
        ("", "def g():\n    return 1\n\n\nrace(\n    f, against=g, on=h, points=1.5\n)  # fast", "1.5"),
        (" points=2", "assert f(1) == 2", "2"),
        (" points=0.5", "check(f)", "0.5"),
        (" points=1", "%time f(1)", "1"),
    ]:
        (cell,) = cells_of(course, f'# %% id="f_check" role="test"{header}\n{code}\n')
        assert str(cell.metadata.nbgrader.points) == points


def test_nbgraders_metadata_comes_from_the_role_and_what_else_a_header_says_is_kept(course):
    plain, *cells = cells_of(course, f"# %%\n1\n\n{GIVEN}\n{SOLUTION}")
    assert (plain.id, plain.metadata) == ("cell-0", {}) and cells[0].metadata.pop("tags") == ["x"]
    common = {"schema_version": 3, "task": False, "grade": False, "locked": True, "solution": False}
    answer, test = {"locked": False, "solution": True}, {"grade": True, "points": 1}
    more = {"setup": {}, "twice": answer, "twice_check": test}
    assert [cell.id for cell in cells] == list(more)
    for cell in cells:
        assert cell.metadata == {"nbgrader": common | {"grade_id": cell.id} | more[cell.id]}


CHECK, T = "check(f, points=1)", 'id="t" role="test"'
# nbgrader's own metadata: an answer that a person grades, and a task, which the course does not have.
MANUAL = '{"grade": true, "grade_id": "t", "locked": false, "points": 1, "solution": true, "task": false}'
TASK = '{"grade": false, "grade_id": "t", "locked": true, "points": 1, "solution": false, "task": true}'
# What the build says, and of which headers and codes.
WRONG_HEADERS = {
    "has no check or race with points=": [(T, "assert f(1)"), (T, "check(f)"), (T, "")],
    "as Python, has no check or race with points=": [(T, "%time check(f, points=1)")],
    "both its code and its header have points=": [(f"{T} points=1", CHECK)],
    "points must be a number above 0, not 'ONE'": [(T, "check(f, points=ONE)")],
    "points must be a number above 0, not inf": [(T, "check(f, points=1e999)")],
    "points must be a number above 0, not 0": [(f"{T} points=0", "f(1)")],
    "one check or race with points=, as its last line": [
        (T, f"{CHECK}\n{CHECK}"), (T, f"for f in g:\n    {CHECK}"), (T, f"done = {CHECK}"),
    ],
    'its code gives points, but its header has no role="test"': [
        ("", CHECK), ('tags=["x"]', f"def later():\n    {CHECK}"),
    ],
    "only a test gives points, and its role is given": [('id="t" role="given"', CHECK)],
    "only a test gives points, and its role is answer": [('id="t" role="answer" points=1', "f(1)")],
    "must have a role: given, answer, test; 'tset' is none": [('id="t" role="tset"', CHECK)],
    "must have a role: given, answer, test; None is none": [('id="t"', CHECK), ("points=1", "f(1)")],
    "must have an id, in quotation marks": [
        ('role="test"', CHECK), ('id=3 role="test"', CHECK), ('id="" role="test"', CHECK),
    ],
    "it is text, and only code has a role": [('[markdown] id="t" role="given"', "# Text.")],
    # what Jupytext cannot read, and what nbgrader knows besides
    'its header cannot be read: id="t" role=test': [('id="t" role=test', CHECK)],
    'must say id="…" role="…" in place of nbgrader': [
        (f"nbgrader={MANUAL}", "f(1)"), (f"nbgrader={TASK}", "f(1)"), (f"{T} nbgrader={{}}", CHECK),
    ],
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG_HEADERS)
def test_a_header_that_says_something_wrong_ends_the_build(course, message):
    for header, code in WRONG_HEADERS[message]:
        with pytest.raises(builder.BuildError, match=message) as refused:
            cells_of(course, f"# %%\nimport torch\n\n# %% {header}\n{code}\n")
        assert re.match(r"some\.py: cell \S+ \(.*\): [^\n]+$", str(refused.value))


ASKED = "# %%\nguess = ...\n\n# %%\ncompare(guess=guess)\n\n# %%\nf()\n\n# %% [markdown]\n"


def commented(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in text.split("\n")) + "\n\n# %%\nf()\n"


def test_an_answer_is_folded_and_what_leads_on_is_not(course):
    for text, (answer, rest) in {
        "**Why.** Bytes.": (["**Why.** Bytes."], ""),
        "It is slow.\n\nTwice.\n\n## Next\n\nMore.": (["It is slow.", "Twice."], "## Next\n\nMore."),
        "It is slow.\n\nHow many copies?": (["It is slow."], "How many copies?"),
        "It is slow. These are the copies:": (["It is slow."], "These are the copies:"),
        "```python\n# no heading\n\n# nor this\n```": (["```python\n# no heading", "# nor this\n```"], ""),
        "How many copies?": ([], "How many copies?"),
    }.items():
        source = cells_of(course, ASKED + commented(text))[3].source
        folded, _, open_ = source.rpartition("</details>")
        assert (folded.split("\n\n")[1:-1], open_.strip()) == (answer, rest)
        assert source.startswith("<details") == bool(answer)
        # JupyterLab saves it as it is shown.
        assert cells_of(course, ASKED + commented(source))[3].source == source


def in_jupyterlab(course: Path, opened: str, change) -> None:
    """Open a file of the solution as a notebook, change its cells and save, as JupyterLab does."""
    manager = jupytext.TextFileContentsManager(root_dir=str(course))
    path = f"solutions/01_one/01_one{opened}"
    content = manager.get(path, content=True, type="notebook")["content"]
    change(content.cells)
    manager.save({"type": "notebook", "format": "json", "content": content}, path)


@pytest.mark.parametrize("opened", [".py", ".ipynb"])
def test_headers_stay_light_when_jupyterlab_saves_also_of_a_cell_marked_there(course, monkeypatch, opened):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(course / ".jupyter"))  # the signatures of notebooks
    shutil.copy(ROOT / "pyproject.toml", course)
    script = course / "solutions/01_one/01_one.py"
    fresh = builder.build(script)
    nbformat.write(fresh, script.with_suffix(".ipynb"))
    change = lambda cells: cells[-1].update(source=f"{cells[-1].source}\n# changed")
    in_jupyterlab(course, opened, change)
    assert script.read_text() == f"{SOLUTION}# changed\n"
    change(fresh.cells)
    assert builder.build(script) == fresh

    data = {"grade": True, "grade_id": "twice_more", "locked": True, "points": 1, "solution": False}
    new = nbformat.v4.new_code_cell("check(twice, points=2)", metadata={"nbgrader": data})
    in_jupyterlab(course, ".ipynb", lambda cells: cells.append(new))
    assert "twice_more" in script.read_text() and 'id="twice_more"' not in script.read_text()
    more = {"points": 2, "schema_version": 3, "task": False}
    assert builder.build(script).cells[-1].metadata.nbgrader == data | more
    told = '\n# %% id="twice_more" role="test"\ncheck(twice, points=2)\n'
    assert lighter(script.read_text()).endswith(told)


@pytest.mark.slow
def test_build_and_build_again(course, capsys):
    assert builder.make_notebooks(course) == 0
    chapter = read(course / "course/01_one.ipynb")
    assert [cell.execution_count for cell in builder.code_cells(chapter)] == [1, 2, 3]
    assert chapter.cells[2].outputs[0].text == "course\n"
    assert chapter.cells[3].outputs[0].data["text/plain"] == "2"
    assert chapter.metadata == builder.METADATA
    assert all(not cell.metadata for cell in chapter.cells[1:])
    exercise = (course / "exercises/01_one/01_one.ipynb").read_text()
    assert "the answer" not in exercise and "abab" not in exercise and "twice(1) == 2" in exercise
    assert {path.suffix for path in (course / "exercises").rglob("*") if path.is_file()} == {".ipynb"}
    assert not list(course.glob("*.db")) and "course/01_one.ipynb" in capsys.readouterr().out

    before = notebooks(course)
    assert builder.make_notebooks(course) == 0 and notebooks(course) == before
    assert "course/01_one.ipynb" not in capsys.readouterr().out

    assert builder.make_notebooks(course, ["01"]) == 0
    after = notebooks(course)
    rebuilt = {path.relative_to(course).as_posix() for path in after if after[path][0] != before[path][0]}
    assert rebuilt == {"course/01_one.ipynb"}
    assert after[course / "course/01_one.ipynb"][1] == before[course / "course/01_one.ipynb"][1]

    # Headers that Jupytext made heavy are made light again, and nothing else changes.
    script = course / "solutions/01_one/01_one.py"
    jupytext.write(builder.build(script), script, fmt="py:percent")
    assert "nbgrader={" in script.read_text() and builder.make_notebooks(course) == 0
    assert notebooks(course) == after and script.read_text().endswith(SOLUTION)
    said = "solutions/01_one/01_one.py: nbgrader's metadata in headers became id= and role="
    assert said in capsys.readouterr().out


@pytest.mark.slow
def test_what_decides_no_claim_ends_make_notebooks_with_one_sentence(course, capsys, monkeypatch):
    """The claims of a cell, and those of all cells together; tests/teaching has the other sentences."""
    (course / "solutions/01_one/01_one.py").unlink()
    (course / "README.md").write_text(f"{remember.BEGIN}\n{remember.END}\n")
    monkeypatch.chdir(course)
    for cell, sentence in [
        ('behaviour("Z9", "It is so.", True)', "There is no claim 'Z9'."),
        ('behaviour("C3", "It moves.", True, when="it rains")', "'it rains' has cells on one side only."),
    ]:
        (course / "course/01_one.py").write_text(f"# %%\nfrom autograder import behaviour\n\n{cell}\n")
        assert main(["notebooks"]) == 1
        (line,) = [line for line in capsys.readouterr().err.splitlines() if line.strip()]
        assert line.startswith("error: ") and sentence in line


@pytest.fixture
def ran(course, monkeypatch):
    """The course with a chapter that has run, with an older cell for Colab; nothing can run now."""
    (course / "solutions/01_one/01_one.py").unlink()
    made = builder.build(course / "course/01_one.py")
    made.cells[0].source = "# older"
    for number, cell in enumerate(builder.code_cells(made), 1):
        shown = nbformat.v4.new_output("execute_result", {"text/plain": "kept"}, execution_count=number)
        cell.execution_count, cell.outputs = number, [shown] if number > 1 else []
    nbformat.write(made, course / "course/01_one.ipynb")
    monkeypatch.setattr(builder, "execute", Mock(side_effect=builder.BuildError("was run")))
    return course


def test_a_page_about_all_chapters_is_built_again_after_a_chapter_changed(ran, capsys, monkeypatch):
    monkeypatch.setattr(builder, "execute", lambda *_: None)
    for page in builder.PAGES:
        (ran / "course" / f"{page}.py").write_text("# %%\n1 + 1\n")
    assert builder.make_notebooks(ran) == 0
    capsys.readouterr()
    assert builder.make_notebooks(ran) == 0 and capsys.readouterr().out == ""
    chapter = ran / "course/01_one.py"
    chapter.write_text(chapter.read_text() + "\n# %%\n3 + 3\n")
    assert builder.make_notebooks(ran) == 0
    said = capsys.readouterr().out
    assert all(f"course/{name}.ipynb" in said for name in ("01_one", *builder.PAGES))


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
    for number, cell in enumerate(others, 2):
        assert cell.execution_count == cell.outputs[0].execution_count == number
        assert cell.outputs[0].data["text/plain"] == "kept"
    assert len(others) == 2

    assert builder.make_notebooks(ran, ["01"]) == builder.make_notebooks(ran, everything=True) == 1
    assert capsys.readouterr().err.count("was run") == 2


def test_a_chapter_with_other_code_or_with_outputs_of_another_run_runs(ran, capsys):
    """Cells run out of order, an error, a folder of this machine: somebody worked in the notebook."""
    path, script = ran / "course/01_one.ipynb", ran / "course/01_one.py"
    whole = read(path)
    error = nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[])
    here = nbformat.v4.new_output("stream", text="see /home/ada/x")
    wrong = [("execution_count", 5), ("execution_count", None), ("outputs", [error]), ("outputs", [here])]
    for key, value in wrong:
        changed = deepcopy(whole)
        changed.cells[-1][key] = value
        nbformat.write(changed, path)
        assert builder.make_notebooks(ran) == 1, value
        assert "was run" in capsys.readouterr().err, value
    nbformat.write(whole, path)
    for old, new in [
        ("1 + 1", "1 + 2"),
        ("# %%\n1 + 1\n", ""),
        ("# %%\n1 + 1", "# %%\n2\n\n# %%\n1 + 1"),
        ("# %%\n1 + 1", "# %% [raw]\n1 + 1"),
    ]:
        script.write_text(CHAPTER.replace(old, new))
        before = notebooks(ran)
        assert builder.make_notebooks(ran) == 1 and "was run" in capsys.readouterr().err
        assert notebooks(ran) == before


@pytest.mark.slow
def test_one_broken_exercise_does_not_hold_up_the_others(course, capsys):
    (course / "course/01_one.py").unlink()
    broken, twice = SOLUTION.replace("    ### END SOLUTION\n", ""), SOLUTION.replace("twice_check", "twice")
    for name, script in {"02_two": broken, "03_three": twice}.items():
        write_whole(course / "solutions" / name / f"{name}.py", script)
    assert builder.make_notebooks(course) == 1
    assert [path.name for path in (course / "exercises").iterdir()] == ["01_one"]
    message = capsys.readouterr().err
    assert "03_three.py: more than one cell has the id twice" in message
    assert "nbgrader made nothing of 02_two" in message and "no end solution statement found" in message
    assert "Traceback" not in message


@pytest.mark.slow
def test_a_cell_that_raises_stops_its_notebook_and_outputs_hold_no_folders_of_this_machine(course, capsys):
    (course / "solutions/01_one/01_one.py").unlink()
    script = course / "course/01_one.py"
    script.write_text(script.read_text() + '\n# %% tags=["raises-exception"]\nx = 1\nint("three")\n')
    assert builder.make_notebooks(course) == 1 and not notebooks(course)
    message = capsys.readouterr().err
    assert "course/01_one.ipynb: cell cell-3" in message and """line 'int("three")'""" in message
    assert "ValueError: invalid literal for int() with base 10: 'three'" in message

    script.write_text("# %%\nimport os, warnings\nprint(os.getcwd())\nwarnings.warn('careful')\n")
    assert builder.make_notebooks(course, ["01"]) == 0
    shown = "".join(output_texts(read(course / "course/01_one.ipynb").cells[1]))
    assert shown.startswith("course\n<cell>:3: UserWarning: careful\n")

    script.write_text("# %%\nprint('see /home/ada/notes.txt')\n")
    assert builder.make_notebooks(course, ["01"]) == 1
    assert "absolute path, /home/ada" in capsys.readouterr().err
    assert "/home/ada" not in (course / "course/01_one.ipynb").read_text()


@pytest.mark.slow
def test_record_runs_the_chapters_and_keeps_the_notebooks(course, capsys):
    (course / "course/01_one.py").write_text(
        "# %%\nimport json, os, pathlib\n"
        'device = {"name": "Abacus", "kind": "cpu", "torch": "2", "date": ""}\n'
        'content = {"device": device, "timings": {"t": {"seconds": {"a": [os.getpid()], "b": [1]}}}}\n'
        "pathlib.Path(os.environ['AUTOGRADER_RECORD'], 'device.json').write_text(json.dumps(content))\n"
    )
    assert builder.record(course, processes=2) == 0 and not notebooks(course)
    told = (course / "data/timings/device.json").read_text()
    kernels = re.search(r'"a": \[ (\d+), (\d+) \]', told)
    assert kernels and kernels[1] != kernels[2] and '"processes": [ 1, 1 ]' in told
    assert "wrote data/timings/device.json\n  the device's " in (printed := capsys.readouterr().out)
    assert "issues/new?template=claim" in printed
    assert "| Abacus |" in (course / "data/timings/README.md").read_text()


def test_unknown_chapters_and_commands_are_refused(course, capsys, monkeypatch):
    monkeypatch.chdir(course)
    assert main(["notebooks", "99"]) == 1
    message = capsys.readouterr().err
    assert "no chapter is called '99'" in message and "01_one" in message
    for wrong in (["notebooks", "--nonsense"], ["nonsense"], []):
        with pytest.raises(SystemExit) as end:
            main(wrong)
        assert end.value.code == 2, wrong
