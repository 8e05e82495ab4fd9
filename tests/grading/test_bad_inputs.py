"""Nothing that lies in a submission's folder stops or hangs grading, feedback or the report, for anybody.

A class of all bad inputs is graded once by each way there is. Each is one student's: ``WRONG`` cases are no
notebook that can be graded: 0 points, and a page that says why. ``ODD`` ones hold right answers, which must
count. ``NAMELESS`` are folders that no student can have.
"""

import json
import os
import stat
import sys
from collections.abc import Callable, Iterable
from copy import deepcopy
from pathlib import Path

import pytest
from grading_class import a_class, built_once, configure
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from pretend_class import FULL, RIGHT, Graded, answered
from programs import run

from autograder.authoring.scratch_course import ScratchCourse

pytestmark = [pytest.mark.slow, pytest.mark.attack]
Content = Callable[[NotebookNode], bytes]
Place = Callable[[Path, bytes], None]


def text(notebook: object) -> bytes:
    """A notebook's JSON, whatever is in it."""
    return json.dumps(notebook).encode()


def with_(**fields: object) -> Content:
    """Right answers in a notebook with other values in some of its outermost fields."""
    return lambda release: text({**answered(release), **fields})


def with_cells(change: Callable[[list], object]) -> Content:
    """Right answers in a notebook with other cells."""

    def made(release: NotebookNode) -> bytes:
        notebook = json.loads(text(answered(release)))
        notebook["cells"] = change(notebook["cells"])
        return text(notebook)

    return made


def with_last(cell: dict, field: str, values: Iterable[object]) -> Content:
    """The same with cells at the end that have these values in a field."""
    return with_cells(lambda cells: [*cells, *({**cell, field: value} for value in values)])


def with_raw(value: str) -> Content:
    """The same with a text in place of a value that JSON has no way to make from Python."""
    return lambda release: with_(metadata={"x": "HERE"})(release).replace(b'"HERE"', value.encode())


def with_answer(code: str) -> Content:
    """Right answers, and something beside the first one."""
    return lambda release: text(answered(release, double=f"{RIGHT['double']}\n{code}"))


def version_3(release: NotebookNode) -> bytes:
    """The same in version 3 of the format, which had worksheets."""
    cells = [{**cell, "input": cell["source"], "language": "python"} for cell in answered(release).cells]
    return text({"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]})


def duplicates(release: NotebookNode) -> bytes:
    """Cells with the same ids, and keys that are there twice."""
    notebook = answered(release)
    for cell in notebook.cells:
        cell.id = "same"
    return text(notebook).replace(b'"cell_type": "code"', b'"source": 7, "id": 7, "cell_type": "code"')


DEEP, LONG = 100_000, 30_000
NAMES = (None, 7, [], {}, "", "\0", "\ud800", "x" * 1_000_000, {"grade_id": []}, True)
NAMED = [{"nbgrader": {"grade_id": name, "solution": True}} for name in NAMES]
METADATA = (None, 7, [], "text", {"nbgrader": []}, {"nbgrader": "x"}, {"nbgrader": {"points": {}}})
ATTACHED = (7, [], "x", {"a": 7}, {"a": {"image/png": {}}}, {"\ud800": {"image/png": "x"}}, {"a": []})
OUTPUTS = [7, None, {"output_type": []}, {"data": 1}]
ODD: dict[str, Content] = {
    "format_3": version_3,
    "five_thousand_digits": with_raw("9" * 5000),
    "a_million_digits": with_raw(f"-{'1' * 1_000_000}"),
    "infinity": with_raw('[NaN, Infinity, -Infinity, 1e999, "\\ud800"]'),
    "names": with_last(new_code_cell("1"), "metadata", NAMED),
    "metadata": with_last(new_code_cell("1"), "metadata", METADATA),
    "attachments": with_last(new_markdown_cell("!"), "attachments", ATTACHED),
    "duplicates": duplicates,
    "copies": with_cells(lambda cells: cells * (900 // len(cells))),
    "outputs": with_last(new_code_cell("1"), "outputs", [OUTPUTS * 30_000]),
    "metadata_of_the_notebook": with_(metadata={"autograder": {"finished": "2030", "problem": "none"}}),
    "surrogates": with_answer("# \ud800 \udfff are no characters"),
    "nothing_else": with_(metadata=None, nbformat_minor="many"),
    "more_kinds_of_lines": with_answer("x = '\u2028 \x0b \x0c \x85'"),
}
# What stands beside right answers cannot be run or parsed; the exercise is lost, and no other.
ONE_LOST: dict[str, Content] = {
    "null_character": with_answer("x = '\0'\n\0"),
    "signs": with_answer(f"x = {'-' * LONG}1"),
    "brackets": with_answer(f"x = {'(' * LONG}"),
    "attributes": with_answer(f"x = a{'.a' * LONG}"),
    "odd_texts": with_answer("\n".join(['"\\d"'] * 15_000) + "\n)"),
    "blank_lines": with_answer(" \n" * LONG + ")"),
}
WRONG: dict[str, Content] = {
    "format_2": with_(nbformat=2),
    "format_3_without_sheets": with_(nbformat=3),
    "format_true": with_(nbformat=True),
    "format_huge": lambda release: text(release).replace(b'"nbformat": 4', b'"nbformat": ' + b"4" * 5000),
    "cells_object": with_(cells={}),
    "cells_no_objects": with_cells(lambda cells: [7, None, *cells]),
    "cells_many": with_cells(lambda cells: cells * 5000),
    "cell_type": with_last(new_markdown_cell("!"), "cell_type", [["code"]]),
    "source_numbers": with_last(new_markdown_cell("!"), "source", [[1, 2]]),
    "source_long": with_last(new_markdown_cell("!"), "source", ["x" * 110_000]),
    "texts": with_last(new_markdown_cell("!"), "source", ["[" * 90_000] * 3),
    "nested": lambda release: b"[" * DEEP + b"]" * DEEP,
    "parts": lambda release: b"[" + b"[]," * 5_000_000 + b"[]]",
    "number": lambda release: b"9" * 5000,
    "list": lambda release: b"[1, 2, 3]",
    "null": lambda release: b"null",
    "empty": lambda release: b"",
    "cut_off": lambda release: text(release)[:2000],
    "conflict": lambda release: text(release).replace(b'"cells"', b'<<<<<<< HEAD\n"cells"', 1),
    "web_page": lambda release: b"<!DOCTYPE html>\n<html><body>Sign in</body></html>",
    "binary": lambda release: bytes(range(256)),
    "lines": lambda release: b"\n" * 20_000_000 + b"x",
    "utf_16": lambda release: text(release).decode().encode("utf-16"),
    "not_utf_8": lambda release: text(release)[:500] + b"\xff\xc0\xed\xa0\x80" + text(release)[500:],
}
gradebook = lambda path: path.parents[3] / "gradebook.db"


def folder_in_place(path: Path, right: bytes) -> None:
    path.mkdir()
    (path / path.name).write_bytes(right)


def second_name(path: Path, right: bytes) -> None:
    (path.parents[3] / "right.ipynb").write_bytes(right)
    os.link(path.parents[3] / "right.ipynb", path)


def larger_than_any_disk(path: Path, right: bytes) -> None:
    path.write_bytes(right)
    os.truncate(path, 1 << 40)


def nothing_may_be_read(path: Path, right: bytes) -> None:
    path.write_bytes(right)
    path.chmod(0)


def submission_is_a_pipe(path: Path, right: bytes) -> None:
    path.parent.rmdir()
    os.mkfifo(path.parent)


def submission_is_a_link(path: Path, right: bytes) -> None:
    path.parent.rmdir()
    elsewhere = path.parents[3] / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    (elsewhere / path.name).write_bytes(right)
    path.parent.symlink_to(elsewhere)


ROOT = os.geteuid() == 0  # nobody else can make a device, and to root nothing is forbidden
IN_PLACE: dict[str, Place] = {
    "missing": lambda path, right: None,
    "renamed": lambda path, right: path.with_name("my copy.ipynb").write_bytes(right) and None,
    "folder_in_place": folder_in_place,
    "pipe_in_place": lambda path, right: os.mkfifo(path),
    "link_to_the_gradebook": lambda path, right: path.symlink_to(gradebook(path)),
    "second_name": second_name,
    "larger_than_any_disk": larger_than_any_disk,
    "submission_is_a_pipe": submission_is_a_pipe,
    "submission_is_a_link": submission_is_a_link,
}
if ROOT:  # as /dev/zero
    IN_PLACE["endless_device"] = lambda path, right: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
else:
    IN_PLACE["nothing_may_be_read"] = nothing_may_be_read


def pipes_beside(path: Path, right: bytes) -> None:
    for name in ("data.csv", "timestamp.txt", "helpers.py", "submission_secret.txt"):
        os.mkfifo(path.with_name(name))


def folders_beside(path: Path, right: bytes) -> None:
    page = path.with_suffix(".html")
    for name in ("timestamp.txt", "submission_secret.txt", page.name, "empty", f"{path.stem}_files"):
        path.with_name(name).mkdir()
    (page / "page.html").write_text("mine")


def links_beside(path: Path, right: bytes) -> None:
    os.link(gradebook(path), path.with_name("hard.db"))
    path.with_name("soft.db").symlink_to(gradebook(path))
    path.with_name("loop").symlink_to(path.parent)
    path.with_name("timestamp.txt").symlink_to(gradebook(path))


def names_beside(path: Path, right: bytes) -> None:
    for name in (b"a\nb", b"\xff\xfe", b"`x`", b"<b>", b"*", b"x" * 249):
        Path(os.fsdecode(os.fsencode(path.parent) + b"/" + name + b".ipynb")).write_bytes(right)


def nested_beside(path: Path, right: bytes) -> None:
    folder = path.parent.joinpath(*["deeper"] * 100)
    folder.mkdir(parents=True)
    (folder / path.name).write_bytes(right)


def nothing_beside_may_be_read(path: Path, right: bytes) -> None:
    path.with_name("closed").mkdir()
    for name in ("data.csv", "timestamp.txt", "closed/x"):
        path.with_name(name).write_text("2030-01-01 10:00:00 UTC")
        path.with_name(name).chmod(0)
    path.with_name("closed").chmod(0)


def beside(name: str, content: bytes) -> Place:
    return lambda path, right: path.with_name(name).write_bytes(content) and None


TIMES = {
    "words": b"some day",
    "binary": bytes(range(256)),
    "digits": b"2030-01-01 10:00:00 " + b"9" * 5000,
    "year": b"99999999999999-01-01 10:00:00 UTC",
    "zone": b"0001-01-01 00:00:00 +9999",
    "long": b"2030-01-01 10:00:00 UTC" + b" " * 1_000_000,
}
BESIDE: dict[str, Place] = {
    "pipes_beside": pipes_beside,
    "folders_beside": folders_beside,
    "links_beside": links_beside,
    "names_beside": names_beside,
    "nested_beside": nested_beside,
    **({} if ROOT else {"nothing_beside_may_be_read": nothing_beside_may_be_read}),
    **{f"time_{name}": beside("timestamp.txt", content) for name, content in TIMES.items()},
    "secret_binary": beside("submission_secret.txt", bytes(range(256))),
    "secret_long": beside("submission_secret.txt", b"x" * 1_000_000),
}

NAMELESS = [b"a\nb", b"\xff\xfe", b" space", b"space ", b"[a]", b"st*r", b"what?", b"x" * 200]
NAMELESS += [b"\xe2\x80\xae", b"\x1b"]


def hand_in_all(submitted: Path, assignment: str, release: NotebookNode) -> None:
    """A class of all cases, and ``aa_right`` and ``zz_right``, graded before and after them."""
    right = text(answered(release))

    def place(student: str | bytes) -> Path:
        folder = Path(os.fsdecode(os.fsencode(submitted) + b"/" + os.fsencode(student))) / assignment
        folder.mkdir(parents=True)
        return folder / f"{assignment}.ipynb"

    for student in ("aa_right", "zz_right", *NAMELESS):
        place(student).write_bytes(right)
    for student, content in {**ODD, **ONE_LOST, **WRONG}.items():
        place(student).write_bytes(content(deepcopy(release)))
    for student, made in IN_PLACE.items():
        made(place(student), right)
    for student, made in BESIDE.items():
        path = place(student)
        path.write_bytes(right)
        made(path, right)


STUDENTS = ("aa_right", *ODD, *ONE_LOST, *WRONG, *IN_PLACE, *BESIDE, "zz_right")
SAID = {
    "cut_off": "not valid JSON. The first mistake is in line",
    "empty": "The file traps.ipynb is empty.",
    "web_page": "It looks like a web page.",
    "conflict": "in line 1, column 2: Expecting property name enclosed in double quotes. There stands: {<<<",
    "list": "valid JSON, but it is not a Jupyter notebook",
    "binary": "cannot be read as text",
    "missing": "The submission has no file traps.ipynb.",
    "renamed": "It has my copy.ipynb. Was the notebook renamed?",
    "pipe_in_place": "traps.ipynb is a pipe, and no file of its own.",
    "folder_in_place": "traps.ipynb is a folder",
    "second_name": "a file with a second name (a hard link)",
    "link_to_the_gradebook": "The submission has no file traps.ipynb.",  # links are taken away
}


def grade_all(folder: Path, way: str) -> None:
    """The class, graded in one of the two ways; one of them with feedback and report, which read the same."""
    course = a_class(folder, students=())
    configure(course, "c.RunEveryCell.timeout = 20")
    hand_in_all(course.folder / "submitted", "traps", course.released("traps"))
    commands = [f"{way} traps"]
    if way == "autograder grade":
        commands += [f"nbgrader {name}_feedback traps" for name in ("generate", "release")]
        commands.append("autograder report traps")
    said = {}
    for command in commands:
        there = {"cwd": course.folder, "env": os.environ | course.environment, "errors": "replace"}
        done = run(sys.executable, "-m", *command.split(), **there)
        said[command] = (done.returncode, done.stdout + done.stderr)
    (folder / "said.json").write_text(json.dumps(said))
    for closed in folder.rglob("closed"):
        closed.chmod(0o700)


@pytest.fixture(scope="module", params=["autograder grade", "nbgrader autograde"])
def graded(request: pytest.FixtureRequest) -> Graded:
    """The class that was graded so once for all tests: they only look at it, so they need no copy."""
    folder = built_once(request.param.replace(" ", "_"), lambda new: grade_all(new, request.param))
    found = Graded(ScratchCourse(folder), "traps")
    found.said = json.loads((folder / "said.json").read_text())
    return found


def test_every_command_comes_to_its_end(graded: Graded) -> None:
    for command, (status, said) in graded.said.items():
        # Folders that no student can have are left, and told.
        assert status == (1 if command == "autograder grade traps" else 0), (command, said[-2000:])
        assert "Traceback" not in said, command


def test_everybody_has_a_grade_and_right_answers_count_whatever_else_is_there(graded: Graded) -> None:
    assert graded.points.keys() == set(STUDENTS)
    missing = {student: tests for student, tests in graded.points.items() if None in tests.values()}
    assert missing == {}
    found = {student: {test: tests[test] for test in FULL} for student, tests in graded.points.items()}
    right = ("aa_right", "zz_right", *ODD, *BESIDE)
    assert {student: found[student] for student in right} == dict.fromkeys(right, FULL)
    # Code that cannot be read costs one exercise.
    one_lost = {test: points * (not test.startswith("double")) for test, points in FULL.items()}
    assert {student: found[student] for student in ONE_LOST} == dict.fromkeys(ONE_LOST, one_lost)


def test_what_is_no_notebook_gets_0_and_a_page(graded: Graded) -> None:
    for student in (*WRONG, *IN_PLACE):
        assert set(graded.points[student].values()) == {0}, student
        assert "This submission could not be graded" in graded.autograded(student).cells[0].source, student
        if "nbgrader generate_feedback traps" in graded.said:
            page = graded.page(student)
            assert "This submission could not be graded" in page and SAID.get(student, "") in page, student
            assert "Traceback" not in page and "had been deleted" not in page, student


def test_folders_that_no_student_can_have_are_told(graded: Graded) -> None:
    _, said = next(iter(graded.said.values()))
    assert [name for name in NAMELESS if ascii(os.fsdecode(name)[:128]) not in said] == []
    assert said.count("rename its folder") >= len(NAMELESS)


def test_nothing_but_the_notebook_its_time_and_its_secret_is_taken_over(graded: Graded) -> None:
    for step in ("autograded", "feedback"):
        folder = graded.course.folder / step
        found = {path.name for path in folder.glob("*/traps/**/*")}
        assert found <= {"traps.ipynb", "traps.html", "timestamp.txt", "submission_secret.txt"}


@pytest.mark.parametrize("graded", ["autograder grade"], indirect=True)
def test_everybody_has_a_page_and_the_report_names_those_without_a_grade(graded: Graded) -> None:
    assert [student for student in STUDENTS if "Score:" not in graded.page(student)] == []
    assert len(list((graded.course.folder / "exchange").rglob("*.html"))) == len(STUDENTS)
    text = (graded.course.folder / "reports" / "traps.html").read_text()
    assert f"{len(STUDENTS)} of {len(STUDENTS) + len(NAMELESS)}" in text
    assert text.count("rename its folder") == len(NAMELESS)
