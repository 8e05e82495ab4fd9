"""Tables as spreadsheet programs save them, texts, JSON, names of files, and writing a file in one piece."""

import csv
import io
import json
import os
import re
from importlib.util import decode_source
from pathlib import Path
from typing import Any


def read_csv(path: Path) -> "csv.DictReader[str]":
    """The rows of a CSV file with a header, with or without a byte order mark, with commas or semicolons.

    Raises OSError, and UnicodeDecodeError for a file that is not in UTF-8.
    """
    text = path.read_text(encoding="utf-8-sig")
    first = text.partition("\n")[0]
    return csv.DictReader(io.StringIO(text), delimiter=";" if first.count(";") > first.count(",") else ",")


def python_text(content: bytes) -> str:
    """A Python file's text, in the encoding it names. Raises SyntaxError, UnicodeError or LookupError."""
    if b"punycode" in b"".join(content.split(b"\n", 2)[:2]).lower():  # a few megabytes can take an hour
        raise LookupError("it is in Punycode")
    return decode_source(content)


def json_in(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds; an empty one, where there is none that can be read."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError):
        return {}


def file_name(text: str) -> str:
    """A name for a file, of small letters, digits, points and dashes, from what people read."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def write_whole(path: Path, content: str | bytes) -> None:
    """Put ``content`` into a file, and make its folder. Who reads it finds the old one or the new, no part.

    Raises OSError where that is not possible; the old file is then still there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
