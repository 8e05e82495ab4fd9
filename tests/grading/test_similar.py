"""Answers that look alike: who is listed, who is not, and what the page shows."""

import ast
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from grading_class import Says, a_class, as_current, nbgrader
from nbformat import NotebookNode
from nbgrader.apps import GenerateAssignmentApp
from pretend_class import hand_in
from repository import ROOT, notebook
from test_report import Text

from autograder.authoring.answers import answers_to
from autograder.authoring.scratch_course import ScratchCourse
from autograder.extras.similar import alike, main
from autograder.extras.similar.alike import FEW, LONGEST, MOST_PAIRS, look_alikes
from autograder.roles import nbgrader_data, solution_cells

pytestmark = pytest.mark.slow  # nbgrader's own commands, or a gradebook for each test
CHAPTER = "01_tensor_creation"
ATTEMPTED = sorted(path.stem for path in (ROOT / "tests" / "attempts").glob("*.py"))  # by a reader
ATTEMPT = re.compile(r"(?m)^# %% (\w+) [0-9a-f]{10}\n")
EVIL = "</code></pre><script>alert(1)</script>"


def attempts(chapter: str) -> dict[str, str]:
    """What one reader wrote, by exercise."""
    _, *parts = ATTEMPT.split((ROOT / "tests" / "attempts" / f"{chapter}.py").read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def other_ways(chapter: str) -> dict[str, dict[str, str]]:
    """What right answers in other ways would make of some students: student -> exercise -> code."""
    students: dict[str, dict[str, str]] = {}
    for exercise, known in answers_to(chapter, ROOT).items():
        right = [one for kind, one in known.items() if kind == "solution" or kind.startswith("right")]
        for number, one in enumerate(right):
            students.setdefault(f"way{number}", {})[exercise] = one.code or ""
    return students


def disguised(code: str) -> str:
    """The same answer with other names, and remarks."""
    tree = ast.parse(code)
    names = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and type(one.ctx) is ast.Store}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} - {"self"}
    for number, name in enumerate(sorted(names)):
        code = re.sub(rf"\b{name}\b", f"mine_{number}", code)
    return re.sub(r"(?m)$", "  # all my own work", code)


pairs = lambda found: {pair.students for pair in found[0]}


def answered(release: NotebookNode, answers: dict[str, str]) -> NotebookNode:
    notebook = nbformat.from_dict(release)
    for name, cell in solution_cells(notebook).items():
        cell.source = answers.get(name, cell.source)
    return notebook


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page: Bo and Chen have what Ada has; the others work on their own, or hand in what is no answer."""
    course = ScratchCourse(tmp_path_factory.mktemp("similar"), ROOT)
    course.add_assignment(ROOT / "solutions" / CHAPTER / f"{CHAPTER}.py")
    nbgrader(course, GenerateAssignmentApp, CHAPTER)
    release = course.released(CHAPTER)
    ada = attempts(CHAPTER)
    ada["pad"] += f"\n# {EVIL} \N{RIGHT-TO-LEFT OVERRIDE}"
    shuffled = answered(release, ada)
    shuffled.cells.reverse()
    hana = "I have read the chapter twice and I still do not see how this could be done at all, sorry. "
    ines = "My machine was broken for most of this week, so that I had no time to work on it before. "
    work: dict[str, NotebookNode | bytes | None] = {
        "ada": answered(release, ada),
        "bo": answered(release, {name: disguised(code) for name, code in ada.items()}),
        "chen": shuffled,
        "goran": b'{"cells": [',
        "hana": answered(release, dict.fromkeys(ada, 3 * hana)),
        "ines": answered(release, dict.fromkeys(ada, 3 * ines)),
        "lucia": answered(release, {next(iter(ada)): "x = 1\n" * 10_000}),
        "mona": None,
        **dict.fromkeys(("jonas", "kavya", "nora", "omar"), release),
    }
    for student, answers in zip(("dalia", "emeka", "fumi"), other_ways(CHAPTER).values(), strict=False):
        work[student] = answered(release, answers)
    paths = {student: hand_in(course, CHAPTER, student, content) for student, content in work.items()}
    paths["mona"].symlink_to(paths["ada"])
    for student in ("nora", "omar"):
        (paths[student].parent / "helpers.py").write_text(ada["rows"])
    with as_current(course):
        assert main([CHAPTER]) == 0
    return (course.folder / "reports" / f"{CHAPTER}_similar.html").read_text(encoding="utf-8")


def test_those_who_copied_are_listed_and_no_others(shown: str) -> None:
    text = Text(shown).text
    listed = set(re.findall(r"(\w+) and (\w+): \d+%", text))
    assert listed == {("ada", "bo"), ("ada", "chen"), ("bo", "chen"), ("nora", "omar")}
    assert "4 pairs look alike" in text and "ada chen 100%" in text
    assert "modules of their own: 100%" in text


def test_the_page_says_what_it_is_and_loads_and_runs_nothing(shown: str) -> None:
    page = Text(shown)
    assert "This is a hint for a person who then reads both answers, and never a penalty." in page.text
    assert "answers taken from the chapter or from the instructors' solution" in page.text
    assert not page.tags & {"script", "link", "iframe"} and not page.addresses
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in shown and "\\u202e" in shown
    assert EVIL in page.text
    marked = "".join(re.findall(r"<mark>(.*?)</mark>", shown, re.DOTALL))  # what two have in common
    assert "larger[: self.number] = self.room[: self.number]" in marked
    assert "import torch" not in marked and "import torch" in shown


def test_who_cannot_be_compared_is_named(shown: str) -> None:
    text = Text(shown).text
    left_out = text[text.index("Not compared") : text.index("ada and ")]
    assert "goran The file `01_tensor_creation.ipynb` is not a Jupyter notebook" in left_out
    assert f"lucia {next(iter(attempts(CHAPTER)))} longer than {LONGEST:,} characters" in left_out
    assert re.search("mona (The submission has no file|`01_tensor_creation.ipynb` is a link)", left_out)
    assert not {"hana", "ines", "jonas"} & set(left_out.split())


def test_nothing_to_compare_and_what_cannot_be_are_said(tmp_path: Path, monkeypatch, says: Says) -> None:
    monkeypatch.chdir(a_class(tmp_path, students=("ada", "bo")).folder)
    text = Text(Path(says(main, "traps").strip()).read_text(encoding="utf-8")).text
    assert "No two submissions look alike." in text and "0 pairs with enough to compare" in text
    assert "Did you mean traps?" in says(main, "tarps", status=1)
    shutil.rmtree("submitted")
    assert "Nobody has handed in traps" in says(main, "traps", status=1)
    monkeypatch.setitem(sys.modules, "copydetect", None)
    monkeypatch.delitem(sys.modules, "autograder.extras.similar.alike")
    assert 'error: copydetect is not installed: pip install "autograder[' in says(main, "traps", status=1)


# Who looks alike.

LONG = attempts("01_tensor_creation")["positional_table"]


def test_what_many_have_in_common_is_no_sign() -> None:
    """A helper that everybody took from the same page."""
    ways = {f"s{number}": {"f": f"{LONG}\n\n{code}"} for number, code in enumerate(different(2 * FEW))}
    assert not pairs(look_alikes(ways, {}))
    assert pairs(look_alikes(dict(list(ways.items())[:2]), {})) == {("s0", "s1")}


def different(number: int) -> list[str]:
    """Answers of some length that have little in common."""
    codes = [code for chapter in ATTEMPTED for code in attempts(chapter).values()]
    return [code for code in sorted(codes, key=len) if len(code) > 600 and code != LONG][:number]


def test_given_code_imports_and_an_answer_as_it_was_given_are_no_sign() -> None:
    imports = "import torch\nfrom torch.nn.functional import " + ", ".join(f"name_{n}" for n in range(40))
    alike = {"ada": {"f": LONG}, "bo": {"f": disguised(LONG)}}
    assert pairs(look_alikes(alike, {})) and look_alikes(alike, {"f_given": LONG})[1] == 0
    assert look_alikes({"ada": {"f": imports}, "bo": {"f": imports}}, {})[1] == 0
    words = '"""' + "Words. " * 50 + '"""'
    stub = f"def f(x):\n    {words}\n    raise NotImplementedError('Write your solution here')"
    same = {f"s{number}": {"f": stub + end} for number, end in enumerate(("", "\n", "\n)", "\n]"))}
    assert look_alikes(same, {"f": stub})[1] == 0


def test_only_the_first_of_many_pairs_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = enumerate(different(20))
    many = {f"{group}_{number}": {"f": code} for group, code in groups for number in range(FEW)}
    found, _ = look_alikes(many, {})
    assert len(found) > 2 * MOST_PAIRS
    assert [pair.share for pair in found] == sorted((pair.share for pair in found), reverse=True)
    monkeypatch.setattr(alike, "read_handed_in", lambda course: (many, {}, []))
    shown = alike.page(SimpleNamespace(assignment="traps"))
    assert shown.count("<h2>") == MOST_PAIRS
    assert f"{len(found) - MOST_PAIRS} more pairs look alike" in shown


def test_few_independent_answers_are_listed() -> None:
    """A reader and the course's authors wrote these without each other (docs/instructors.md)."""
    compared, listed = 0, []
    for chapter in ATTEMPTED:
        cells = notebook(ROOT / "exercises" / chapter / chapter).cells  # as students get them
        given = {nbgrader_data(cell).get("grade_id", cell.id): cell.source for cell in cells}
        for way, answers in other_ways(chapter).items():
            found, more = look_alikes({"reader": attempts(chapter), way: answers}, given)
            compared += more
            listed += [(chapter, way, round(pair.share, 2)) for pair in found]
    assert compared >= 60
    assert len(listed) <= 0.02 * compared, listed
