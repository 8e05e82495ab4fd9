"""The comparisons in the chapters' scripts: what each is called, and which claim it tests. Nothing runs."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Cell:
    """A call of ``compare`` in a chapter, and what it says; "…" stands for what is known only when it runs.

    ``sometimes``: it stands in an ``if`` or a loop, which not every machine takes.
    """

    chapter: str
    line: int
    sometimes: bool
    title: str
    claim: str | None = None
    when: str | None = None
    unless: str | None = None
    only: str | None = None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(".+".join(map(re.escape, self.title.split("…"))))

    def is_called(self, title: str) -> bool:
        """Whether it gives its comparison this title."""
        return self._pattern.fullmatch(title) is not None


def comparisons(course: Path) -> list[Cell]:
    """All comparisons of the chapters in a folder, in reading order."""
    return [cell for script in sorted(course.glob("*.py")) for cell in _comparisons_of(script)]


def _comparisons_of(script: Path) -> list[Cell]:
    nodes = list(ast.walk(ast.parse(script.read_text(encoding="utf-8"))))
    within = {inner for node in nodes if isinstance(node, (ast.If, ast.For)) for inner in ast.walk(node)}
    found = []
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "compare":
            named = {word.arg: word.value for word in node.keywords}
            words = {
                name: _text(named[name]) for name in ("claim", "when", "unless", "only") if name in named
            }
            found.append(Cell(script.stem, node.lineno, node in within, _text(node.args[0]), **words))
    return sorted(found, key=lambda cell: cell.line)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "…"
