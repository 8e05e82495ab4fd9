"""Small facts about this machine, kept between sessions in the user's cache folder."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from ..files import file_name, json_in, write_whole


def read(name: str) -> dict[str, Any]:
    """What was written under ``name``; nothing where there is nothing readable."""
    return json_in(path_of(name))


def write(name: str, content: dict[str, Any]) -> None:
    """Keep ``content`` under ``name``; without a writable cache folder it is measured again next time."""
    with suppress(OSError):
        write_whole(path_of(name), json.dumps(content, indent=1))


def folder() -> Path:
    return user_cache_path("autograder", appauthor=False)


def path_of(name: str) -> Path:
    return folder() / f"{file_name(name)}.json"
