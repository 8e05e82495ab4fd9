"""The comparisons in the chapters' scripts: what each is called, and which claim it tests. Nothing runs."""

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..roles import calls_of

# The cause that is predicted, and not taken away; and where a card keeps what went with each cause.
PRICES = "prices"
CAUSES_MIME = "application/vnd.fast-pytorch.causes+json"


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
    only: str | None = None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(".+".join(map(re.escape, self.title.split("…"))))

    def is_called(self, title: str) -> bool:
        """Whether it gives its comparison this title."""
        return self._pattern.fullmatch(title) is not None


def comparisons(course: Path) -> list[Cell]:
    """All comparisons of the chapters in a folder, in reading order."""
    found = []
    for script in course.glob("*.py"):
        code = ast.parse(script.read_text(encoding="utf-8"))
        branches = [node for node in ast.walk(code) if isinstance(node, (ast.If, ast.For))]
        within = {call for branch in branches for call in calls_of(branch, "compare")}
        for call in calls_of(code, "compare"):
            words = {word.arg: _text(word.value) for word in call.keywords if word.arg in ("claim", "only")}
            found.append(Cell(script.stem, call.lineno, call in within, _text(call.args[0]), **words))
    return sorted(found, key=lambda cell: (cell.chapter, cell.line))


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "…"
