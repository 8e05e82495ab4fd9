"""The one place where submitted files are read: only plain files, and of them only what grading needs.

Whatever the bytes are, ``read_notebook`` gives a notebook of sound cells or raises UnreadableNotebook with a
sentence for the student. Cells get new ids and lose their outputs; of the metadata only the names of
nbgrader's cells are kept, which RestoreCells looks up in the gradebook.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import uuid4

import msgspec
import nbformat
from msgspec import Meta
from nbformat import NotebookNode
from nbformat.v4 import new_notebook

from ..show import visible

MOST_BYTES = 25_000_000  # of a notebook with its pictures
MOST_PARTS = 2_000_000  # objects and arrays in its JSON; each takes ten times the memory of its text
MOST_CELLS = 1000
MOST_CELL = 100_000  # characters in a cell
MOST_SOURCE = 2_000_000  # in all cells
MOST_TEXT = 200_000  # in all that hold no code: some texts take long to be made into a page
MOST_NAME = 200  # characters of a grade_id, or of the name of an attached picture
MOST_DIGITS = 18  # of a whole number; no number in a notebook counts for anything but its format

MOST_FILES, MOST_EXTRA = 100, 5_000_000  # files beside a notebook, and bytes of all of them
MOST_ENTRIES = 2000  # to look at in one submission
PASSED_OVER = {"__pycache__", "timestamp.txt"}  # that is nbgrader's
COMPILED = {".pyc", ".so"}  # modules that nobody can look into

_Name = Annotated[str, Meta(max_length=MOST_NAME)]
_KINDS = {"l": "a link to something else", "d": "a folder", "p": "a pipe", "s": "a socket"}


class UnreadableNotebook(Exception):
    """A submitted notebook that cannot be graded; the message is Markdown, written for the student."""


def quoted(text: str) -> str:
    """The beginning of a text as Markdown code: nothing in it is taken for Markdown or HTML."""
    # A formula begins before a code ends.
    line = re.sub(r"\$|\\(?=[\\(\[]|begin)", lambda mark: f"\\x{ord(mark[0]):x}", text)
    line = " ".join(visible(line).split())[:200]
    ticks = "`" * max((len(run) + 1 for run in re.findall("`+", line)), default=1)
    return f"{ticks} {line} {ticks}" if "`" in line else f"`{line}`"


class NotPlain(Exception):
    """Something handed in that is no file of its own; the text says what it is."""


def read_plain(path: Path | str, most: int, folder: int | None = None) -> bytes:
    """The content of a file of at most ``most`` bytes, which has this one name.

    ``folder``: the descriptor of an open folder that ``path`` starts from. Nothing else is opened: a link
    leads elsewhere, and a pipe or a device may never end. Raises NotPlain or OSError.
    """
    _require_plain(os.stat(path, dir_fd=folder, follow_symlinks=False), most)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags, dir_fd=folder), "rb") as file:
        _require_plain(os.fstat(file.fileno()), most)
        content = file.read(most + 1)  # it may grow meanwhile
        _require_plain(os.fstat(file.fileno()), most, len(content))
    return content


def _require_plain(found: os.stat_result, most: int, size: int = 0) -> None:
    if (kind := stat.filemode(found.st_mode)[0]) != "-":
        raise NotPlain(f"{_KINDS.get(kind, 'a device')}, and no file of its own")
    if found.st_nlink > 1:
        raise NotPlain("a file with a second name (a hard link), and no file of its own")
    if max(found.st_size, size) > most:
        raise NotPlain(f"larger than {most / 1e6:g} MB. Clear its outputs and save it again")


def read_notebook(path: Path) -> NotebookNode:
    """The submitted notebook at ``path``. Raises UnreadableNotebook, and nothing else."""
    name = path.name
    try:
        return notebook_of(read_plain(path, MOST_BYTES).decode("utf-8-sig"), name)
    except UnreadableNotebook:
        raise
    except FileNotFoundError:
        message = f"The submission has no file {quoted(name)}."
        with suppress(OSError):
            there = sorted(other.name for other in islice(path.parent.glob("*.ipynb"), 1000))
            if others := ", ".join(map(quoted, there[:5])):
                message += f" It has {others}. Was the notebook renamed? It must keep its name."
    except NotPlain as error:
        message = f"{quoted(name)} is {error}."
    except UnicodeDecodeError as error:
        message = f"The file {quoted(name)} cannot be read as text: {quoted(str(error))}."
    except OSError as error:
        message = f"The file {quoted(name)} cannot be read: {error.strerror}."
    except Exception as error:  # whatever it is, it must cost this submission alone
        message = f"The file {quoted(name)} cannot be read as a notebook ({type(error).__name__})."
    raise UnreadableNotebook(message)


class _Cell(msgspec.Struct):
    cell_type: Literal["code", "markdown", "raw"]
    source: str | list[str]
    metadata: Any = None
    attachments: Any = None


class _Notebook(msgspec.Struct):
    nbformat: Literal[4]
    cells: Annotated[list[_Cell], Meta(max_length=MOST_CELLS)]


def notebook_of(text: str, name: str) -> NotebookNode:
    """The notebook that a text holds; ``name`` is that of its file. Raises UnreadableNotebook."""
    if text.count("{") + text.count("[") > MOST_PARTS:
        raise UnreadableNotebook(f"{quoted(name)} has too many parts. Clear its outputs and save it again.")
    try:
        # Python refuses whole numbers of thousands of digits, and nobody needs them.
        data = json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= MOST_DIGITS else 0)
        if isinstance(data, dict) and data.get("nbformat") == 3:
            data = _from_3(data)
        found = msgspec.convert(data, _Notebook)
    except json.JSONDecodeError as error:
        raise UnreadableNotebook(_not_json(name, text, error)) from None
    except RecursionError:
        raise UnreadableNotebook(f"The file {quoted(name)} is nested too deeply to be a notebook.") from None
    except msgspec.ValidationError as error:
        what = f"The file {quoted(name)} is valid JSON, but it is not a Jupyter notebook that can be graded"
        raise UnreadableNotebook(f"{what}: {quoted(str(error).replace('$.', ''))}.") from None
    fresh = new_notebook()  # without cells, which it would check against the schema
    fresh.cells = list(map(_fresh, found.cells))
    sizes = [len(cell.source) for cell in fresh.cells]
    texts = [len(cell.source) for cell in fresh.cells if cell.cell_type != "code"]
    if sum(sizes) > MOST_SOURCE or sum(texts) > MOST_TEXT or max(sizes, default=0) > MOST_CELL:
        what = f"one of them more than {MOST_CELL:,}, or those without code more than {MOST_TEXT:,}"
        much = f"The cells of {quoted(name)} hold more than {MOST_SOURCE:,} characters, {what}"
        raise UnreadableNotebook(f"{much}. Data belongs into files.")
    return fresh


def _from_3(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook in version 3 of the format, in version 4; nbformat's own way takes minutes for some."""
    cells = [cell for sheet in notebook["worksheets"] for cell in sheet["cells"]]
    kinds = {"heading": "markdown", "html": "markdown"}
    for cell in cells:
        cell["cell_type"] = kinds.get(cell["cell_type"], cell["cell_type"])
        cell["source"] = cell.get("input", cell.get("source"))
    return {"nbformat": 4, "cells": cells}


def _fresh(cell: _Cell) -> NotebookNode:
    """A new cell with its type, source and name. (nbformat checks each against the schema: the most work.)"""
    name: Any = cell.metadata
    for field in ("nbgrader", "grade_id"):
        name = name.get(field) if isinstance(name, dict) else None
    known = isinstance(name, str) and 0 < len(name) <= MOST_NAME and name == sound(name)
    new: dict[str, Any] = {
        "id": uuid4().hex[:8],
        "cell_type": cell.cell_type,
        "metadata": {"nbgrader": {"grade_id": name}} if known else {},
        "source": sound("".join(cell.source)),
    }
    if cell.cell_type == "code":
        new |= {"execution_count": None, "outputs": []}
    elif pictures := _attachments(cell.attachments):
        new["attachments"] = pictures
    return nbformat.from_dict(new)


def _attachments(found: Any) -> dict[str, dict[str, str]]:
    """The pictures in a text cell: for each name the data by their type. Malformed ones are left out."""
    try:
        pictures = msgspec.convert(found or {}, dict[_Name, dict[str, str | list[str]]])
    except msgspec.ValidationError:
        return {}
    return {
        sound(name): {sound(kind): sound("".join(data)) for kind, data in bundle.items()}
        for name, bundle in pictures.items()
    }


def sound(text: str) -> str:
    """The same text, as any program takes it: lone surrogates and null characters are replaced."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _not_json(name: str, text: str, error: json.JSONDecodeError) -> str:
    """What is wrong with a file that is not JSON, where, and what it may be instead."""
    if not text.strip():
        return f"The file {quoted(name)} is empty."
    start = text.rfind("\n", 0, error.pos) + 1
    found = text[start : start + 200].split("\n")[0].strip()[:60] or "the end of the file"
    what = f"The file {quoted(name)} is not a Jupyter notebook: it is not valid JSON."
    where = f"The first mistake is in line {error.lineno}, column {error.colno}: {error.msg}."
    message = f"{what} {where} There stands: {quoted(found)}. "
    if text.lstrip().startswith("<"):
        return message + "It looks like a web page. Download the notebook file itself."
    if any(mark in text for mark in ("<<<<<<<", ">>>>>>>")):
        return message + "It has merge conflict marks from Git (`<<<<<<<`). Resolve the conflict first."
    return message + "It may have been cut off or edited by hand."


def version_of_files(notebook: Path) -> str:
    """A short text that is another one as soon as a submitted notebook, or a file beside it, is."""
    try:
        content = read_plain(notebook, MOST_BYTES)
    except (NotPlain, OSError) as error:  # it says what there is instead
        content = repr(error).encode()
    beside = extra_files(notebook.parent).items()
    others = sorted(f"{name} {None if data is None else digest(data)}" for name, data in beside)
    return digest(repr([digest(content), *others]).encode())


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def extra_files(folder: Path) -> dict[str, bytes | None]:
    """What the regular files in a submission's folder hold, by their paths in it.

    Notebooks, hidden files and Python's caches are passed over. None stands for what is not taken: links,
    compiled modules, and of more than ``MOST_FILES`` or ``MOST_EXTRA`` all but the smallest.
    """
    found: dict[str, bytes | None] = {}
    room = MOST_EXTRA
    for size, path in sorted(_files(folder)):
        content = None
        if size <= room and len(found) < MOST_FILES and path.suffix not in COMPILED:
            with suppress(NotPlain, OSError):
                content = read_plain(path, room)
        found[path.relative_to(folder).as_posix()] = content
        room -= len(content or b"")
    return found


def _files(folder: Path) -> Iterator[tuple[int, Path]]:
    entries = 0
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if _is_taken(name)]
        entries += len(folders)
        for name in names:
            entries += 1
            if entries > MOST_ENTRIES:
                return
            path = Path(place, name)
            with suppress(OSError):  # it has just gone
                if _is_taken(name) and stat.S_ISREG((about := path.lstat()).st_mode):
                    yield about.st_size, path


def _is_taken(name: str) -> bool:
    if name.startswith(".") or name.endswith(".ipynb") or name in PASSED_OVER:
        return False
    return name.isprintable()  # a name that is no text has surrogates, which are not
