"""The course's notebooks: each test keeps one promise, and names every notebook that breaks it."""

import html
import json
import math
import re
import shutil
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import jupytext
import nbformat
import pytest
from repository import CHAPTERS, COURSE, EXERCISES, ROOT, SOLUTIONS, built, notebook, output_texts

from autograder.authoring import builder, whys
from autograder.authoring.answers import points_of
from autograder.authoring.colab import SOURCE, is_colab_cell
from autograder.authoring.sources import address
from autograder.judging import progress
from autograder.measuring import store
from autograder.roles import nbgrader_data
from autograder.sandbox.submissions.suspicious_words import unusual_words
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
    for source in SOLUTIONS:
        text = source.read_text(encoding="utf-8")
        minutes = sum(map(int, re.findall(r"\*\w+, (\d+) minutes\.\*", text)))
        said = f"{sum(points_of(built(source)).values()):g} points, about {minutes} minutes."
        assert '" role="test"\n' in text and "nbgrader=" not in text and said in text, (source.name, said)


def test_what_these_look_for_is_found(tmp_path):
    (tmp_path / "here.md").touch()
    text = "[a](here.md#top) ![b](gone.png) [c](https://example.org) [d](also/gone.md)"
    assert dead_links(text, tmp_path) == ["gone.png", "also/gone.md"]
    for text in ("see /home/ada/x.py", "'/tmp/a.txt'", "(/Users/ada/x)", r"C:\Users\ada", "file=/srv/x"):
        assert builder.ABSOLUTE_PATH.findall(text), text
    for text in ("https://example.org/home/page", "a/b", "3 / 4", "course/01.ipynb", "</tmp>", "1/usr/2"):
        assert not builder.ABSOLUTE_PATH.findall(text), text


def test_the_first_cell_knows_where_the_notebook_is():
    for path in COURSE + SOLUTIONS + EXERCISES:
        first, *others = notebook(path).cells
        folder = path.parent.relative_to(ROOT).as_posix().replace("solutions/", "exercises/")
        assert first.source == SOURCE.format(address=address(ROOT), folder=folder), path.name
        assert is_colab_cell(first) and not any(map(is_colab_cell, others)), path.name


def test_the_courses_own_answers_and_cells_have_no_words_that_an_instructor_looks_at():
    all_cells = [(path, cell) for path in EXERCISES for cell in builder.code_cells(notebook(path))]
    cells = [(path, cell.source) for path, cell in all_cells if not nbgrader_data(cell).get("locked")]
    for path in [*SOLUTIONS, *(ROOT / "tests/answers").glob("*.py")]:
        parts = re.split(r"(?m)^(?=# %%)", path.read_text(encoding="utf-8"))
        # What is given, and a test, is the author's own, and nobody looks at it.
        cells += [(path, part) for part in parts if not re.match(r'.* role="(given|test)"', part)]
    assert len({path for path, _ in cells}) == 3 * len(SOLUTIONS)
    assert [(path.name, found) for path, cell in cells if (found := unusual_words(cell))] == []


def test_every_exercise_has_a_level_and_tests_that_a_student_can_run():
    for name in (path.stem for path in SOLUTIONS):
        found = course_map.chapter(name, ROOT / "course")
        exercises = (ROOT / "exercises" / name / f"{name}.ipynb").read_text(encoding="utf-8")
        levels = re.findall(r"\*(\w+), \d+ minutes\.\*", exercises)
        assert len(levels) == len(found.tests) and all(found.tests.values()), name
        assert set(levels) <= {"Easy", "Medium", "Hard"}, name


# Chapters that breathe: how long they are, what their heads say, and who makes the guesses.

MOST_LINES, MOST_COMPARISONS = 900, 12
# Prose is read at 200 words a minute, code at 20 lines; a guess with its result takes a minute.
WORDS, LINES = 200, 20


def minutes(text: str) -> int:
    """To read and to run a stretch of a chapter's percent script, rounded up to five."""
    cells = jupytext.reads(text, fmt="py:percent").cells
    words = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
    code = [line for cell in cells if cell.cell_type == "code" for line in cell.source.split("\n")]
    lines, guesses = sum(bool(line.strip()) for line in code), len(re.findall(r"(?m)^guess = ", text))
    return 5 * math.ceil((words / WORDS + lines / LINES + guesses) / 5)


def test_chapters_are_short_enough_and_their_heads_say_the_time_and_what_the_reader_must_know() -> None:
    wrong = []
    for chapter in CHAPTERS:
        text = (ROOT / "course" / f"{chapter}.py").read_text(encoding="utf-8")
        # What may be skipped stands before the summary.
        further = "".join(re.findall(r"(?ms)^# ## Further\b.*(?=^# ## Summary\b)", text))
        main = text.replace(further, "", 1)
        head = main.split("# %%\n")[0]
        said = {
            "five widely read articles": "five widely read articles" in head,
            "chapter 00": chapter == "00_measuring" or "chapter 00" in head or "00_measuring" in head,
            f"**Time:** {minutes(main)} minutes": f"**Time:** {minutes(main)} minutes" in head,
            "a summary after what may be skipped": "\n# ## Further" not in main,
            "no guess for the reader": set(re.findall(r"(?m)^guess = (.*)$", text)) == {"..."},
        }
        if further:
            said["that Further can be skipped"] = "skip" in "\n".join(further.split("\n")[:12])
            said[f"{minutes(further)} more for"] = f"{minutes(further)} more for" in head
        wrong += [f"{chapter} must say: {words}" for words, it_does in said.items() if not it_does]
        comparisons = len(re.findall(r"(?<![\w.])compare\(", re.sub(r"(?m)^#.*$", "", main)))
        if main.count("\n") > MOST_LINES or comparisons > MOST_COMPARISONS:
            wrong.append(f"{chapter} has {main.count(chr(10))} lines, {comparisons} comparisons")
    assert wrong == []


# Nothing that only instructors may see is found under exercises/.

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
    assert all(path.is_file() for path in EXERCISES) and leaks(ROOT / "exercises", SOLUTIONS) == []


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


# The front page: the map of the course, and the reader's own progress on it.

INDEX = notebook(ROOT / "course/index")


def test_every_chapter_and_its_exercises_are_on_the_map_as_they_are(tmp_path, monkeypatch, capsys):
    (output,) = [output for cell in INDEX.cells for output in cell.get("outputs", ())]
    shown = output.data["text/markdown"].replace("\N{NO-BREAK SPACE}", " ")
    assert [name for name in CHAPTERS if f"]({name}.ipynb)" not in shown] == []
    assert [path for path in EXERCISES if f"](../{path.relative_to(ROOT)})" not in shown] == []
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
    shutil.copy(ROOT / "course/01_tensor_creation.ipynb", tmp_path)
    monkeypatch.chdir(tmp_path)
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
    monkeypatch.setattr(progress, "_failures", Counter())
    for number, (word, failures) in enumerate((("failed", 1), ("error", 2), ("passed", 0))):
        assert progress.passed() == {}
        shell = SimpleNamespace(kernel=True, execution_count=(place, number), history_manager=history)
        monkeypatch.setattr("IPython.get_ipython", lambda shell=shell: shell)
        assert progress.note_outcome(word) == failures
    kept = {chapter: list(names) for chapter, names in progress.passed().items()}
    assert kept == ({"00_measuring": ["scores_costs_check"]} if place == "exercises" else {})
    store.write(progress.NAME, None)
    store.path_of(progress.NAME).write_text("{")
    assert progress.passed() == {}, "a broken file counts as none"
