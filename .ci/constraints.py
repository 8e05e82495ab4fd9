"""Print constraints.txt: name and version of everything installed in this environment."""

from __future__ import annotations

import re
from importlib.metadata import distributions

LEFT_OUT = {"autograder", "pip"}
HEADER = "# Versions of everything that CI installs, for Python 3.11 and newer. Made by `make constraints`."


def canonical(name: str) -> str:
    """A package's name as the packaging standard spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    versions = {canonical(package.metadata["Name"]): package.version for package in distributions()}
    print(HEADER)
    for name in sorted(versions.keys() - LEFT_OUT):
        print(f"{name}=={versions[name]}")
