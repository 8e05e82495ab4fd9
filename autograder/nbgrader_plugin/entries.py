"""Due dates and tables of students, as people write them."""

from __future__ import annotations

import csv
import io
import re
from datetime import datetime
from pathlib import Path

from nbgrader.utils import gettz, parse_utc

from ..files import read_csv

THREE_WORDS = re.compile(r"\s*(\S+\s+\S+)\s+(\S+)\s*")
OFFSET = re.compile(r"[+-]\d\d:?\d\d")


def utc(date: datetime | str | None) -> datetime | None:
    """A date in UTC and without its zone, as the gradebook keeps it; one without a zone is in UTC already.

    nbgrader itself takes +0100 for a hundred seconds, and a zone that it does not know for UTC. Raises
    ValueError for a text that is no date, and for such a zone.
    """
    if isinstance(date, str) and (words := THREE_WORDS.fullmatch(date)):
        text, zone = words.groups()
        if OFFSET.fullmatch(zone):
            date = text + zone
        elif not zone[0].isalpha() or gettz(zone) is None:
            raise ValueError(
                f"{date!r} has no time zone that is known, but {zone!r}. Write it like 2027-03-05 23:59 and "
                "one of Europe/Berlin, UTC and +0100."
            )
    return parse_utc(date)


def comma_separated(path: str) -> str:
    """A table's text with commas and without a byte order mark, whatever a spreadsheet program put there.

    Raises ValueError for a file in another encoding than UTF-8.
    """
    try:
        table = read_csv(Path(path))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not in UTF-8. Save it as CSV in UTF-8, and start again.") from None
    text = io.StringIO()
    writer = csv.DictWriter(text, table.fieldnames or [], extrasaction="ignore")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()
