"""What may lie in a submission's folder in place of a notebook, or beside one: each case is one student's.

``WRONG`` cases are no notebook that can be graded: 0 points, and a page that says why. ``ODD`` ones hold
right answers, which must count. ``NAMELESS`` are folders that no student can have.
"""

import json
import os
import stat
from collections.abc import Callable, Iterable
from copy import deepcopy
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from pretend_class import RIGHT, answered

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


def gradebook(path: Path) -> Path:
    return path.parents[3] / "gradebook.db"


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
