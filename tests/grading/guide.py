"""The guides for instructors as a test reads them: sections, and the code and the commands in them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt

# How a text in the middle of a sentence begins that somebody would type into a terminal.
COMMAND = re.compile(r"(apt|chmod|dask|git|make|nbgrader|npm|pip|python3?|source|sudo|systemd-run) \S")


@dataclass(frozen=True)
class Block:
    """A fenced block of code."""

    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The commands of a shell's block, each on one line and without remarks."""
        lines = re.sub(r"\\\n\s*", "", self.text).splitlines()
        plain = (re.sub(r"(^|\s+)#.*$", "", line).strip() for line in lines)
        return [line for line in plain if line]


@dataclass
class Section:
    """What stands between one heading and the next: blocks, and commands in the middle of sentences."""

    heading: str
    blocks: list[Block] = field(default_factory=list)
    named: list[str] = field(default_factory=list)

    @property
    def commands(self) -> list[str]:
        """Those of all blocks for a shell."""
        return [command for block in self.blocks if block.language == "sh" for command in block.commands]


def read_guide(path: Path) -> list[Section]:
    """The sections of a page, in their order."""
    tokens = MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8"))
    sections = [Section("")]
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and following:
            sections.append(Section(following.content))
        elif token.type == "fence":
            sections[-1].blocks.append(Block(token.info.strip(), token.content))
        for child in token.children or []:
            if child.type == "code_inline" and COMMAND.match(child.content):
                sections[-1].named.append(child.content)
    return sections
