"""Print constraints.txt: name and version of everything installed in this environment."""

from __future__ import annotations

import re
from importlib.metadata import distributions

from packaging.specifiers import SpecifierSet

LEFT_OUT = {"autograder", "pip"}
HEADER = "# Versions of everything that CI installs, for Python 3.11 and newer. Made by `make constraints`."


def canonical(name: str) -> str:
    """A package's name as the packaging standard spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def condition(requires: str) -> str:
    """The marker of a package that does not take every 3.11: elsewhere, the newest that does is installed."""
    needed = SpecifierSet(requires)
    if "3.11.0" in needed:
        return ""
    parts = (f'python_full_version {one.operator} "{one.version}"' for one in sorted(needed, key=str))
    return f"; {' and '.join(parts)}"


if __name__ == "__main__":
    packages = {canonical(package.metadata["Name"]): package for package in distributions()}
    print(HEADER)
    for name in sorted(packages.keys() - LEFT_OUT):
        requires = packages[name].metadata.get("Requires-Python", "")
        print(f"{name}=={packages[name].version}{condition(requires)}")
