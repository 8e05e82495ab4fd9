"""Three questions at a chapter's head, about earlier chapters; what is right is worked out there and then."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from ..measuring.costs import costs
from ..show import show
from .claims import made
from .guess import folded

FILE = Path(__file__).with_suffix(".toml")
QUESTIONS, LINES = 3, 4
HEAD = "What do you still know? Write your answers in place of the dots, and run the cell again."
PRE = "font-family:monospace;white-space:pre-wrap"
AGAIN = "With dots in their place again, the cell asks new ones."


@dataclass(frozen=True)
class Asked:
    """A question as the reader sees it, and what is right."""

    chapter: str
    ask: str
    code: str
    answer: Any
    because: str

    def told(self, given: object) -> str:
        """What to say of an answer; nothing of none."""
        if given is ...:
            return ""
        why = f"{self.because} ({self.chapter})"
        return f"Right. {why}" if _same(given, self.answer) else f"It is {self.answer}, not {given!r}. {why}"


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of them; ``recall.toml`` says what its keys mean."""

    chapter: str
    ask: str
    code: str
    because: str
    answer: str = ""
    numbers: dict[str, list[int]] = {}
    texts: dict[str, list[str]] = {}
    one: list[str] = []
    others: list[str] = []
    test: str = ""

    def drawn(self) -> Asked:
        """The question with numbers, texts and lines drawn, and its answer."""
        chosen = {name: random.choice(values) for name, values in (self.numbers | self.texts).items()}
        ask, code, answer, because = (
            text.format_map(chosen) for text in (self.ask, self.code, self.answer, self.because)
        )
        if not self.one:
            return Asked(self.chapter, ask, code, _value(code, answer), because)
        lines = random.sample([random.choice(self.one), *random.sample(self.others, LINES - 1)], LINES)
        met = [bool(_value(code, self.test.format(line=line))) for line in lines]
        [odd] = [number for number, it_is in enumerate(met, 1) if met.count(it_is) == 1]
        shown = "\n".join([code, "", *(f"{number}: {line}" for number, line in enumerate(lines, 1))])
        return Asked(self.chapter, ask, shown, odd, because)


def recall(chapter: str, *answers: object) -> None:
    """Three new questions from the chapters before ``chapter`` ("07"), or which of the ``answers`` are right.

    An answer is ``...`` until there is one. Raises TypeError where there are not three.
    """
    if len(answers) != QUESTIONS:
        raise TypeError(
            f"recall takes {QUESTIONS} answers after the chapter; a place without one has dots: ..."
        )
    if chapter not in _asked or all(answer is ... for answer in answers):
        _asked[chapter] = [question.drawn() for question in chosen(chapter, questions())]
        answers = (...,) * QUESTIONS
    asked, head = _asked[chapter], HEAD
    told = [one.told(answer) for one, answer in zip(asked, answers, strict=True)]
    if any(told):
        head = f"Right: {sum(one.startswith('Right') for one in told)} of {len(asked)}. {AGAIN}"
    text, html = [head], []
    for number, (one, said) in enumerate(zip(asked, told, strict=True), 1):
        text.append(f"{number}. {one.ask}\n{one.code}\n{said}".rstrip())
        code = f"<pre style='{PRE}'>{escape(one.code)}</pre>"
        html.append(f"<li>{escape(one.ask)}{code}<p>{escape(said)}</p></li>")
    right = "".join(f"<li>{escape(one.told(one.answer))}</li>" for one in asked)
    below = "" if all(told) else folded("What is right", f"<ol>{right}</ol>")
    show("\n\n".join(text), f"<p>{head}</p><ol>{''.join(html)}</ol>{below}")


_asked: dict[str, list[Asked]] = {}  # last, by the chapter at whose head they stand


def questions(path: Path = FILE) -> list[Question]:
    """All of them, in the order of the file. Raises ScoreError for one that does not say what it must."""
    given = msgspec.toml.decode(path.read_bytes())["question"]
    return [made(Question, one.get("ask", "?"), one, path) for one in given]


def chosen(chapter: str, among: Sequence[Question]) -> list[Question]:
    """Questions of chapters before this one, of different ones where there are enough, in their order."""
    before = [one for one in among if one.chapter[:2] < chapter]
    random.shuffle(before)
    first = {one.chapter: one for one in before}
    rest = [one for one in before if one is not first[one.chapter]]
    return sorted([*first.values(), *rest][:QUESTIONS], key=lambda one: one.chapter)


def _value(code: str, expression: str) -> Any:
    """What an expression gives after this code; the code prints nothing."""
    import numpy as np
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler

    names: dict[str, Any] = {"costs": costs, "F": F, "math": math, "nn": nn, "np": np, "torch": torch}
    names |= {"DataLoader": DataLoader, "DistributedSampler": DistributedSampler, "print": lambda *_: None}
    exec(code, names)
    return eval(expression, names)


def _same(given: object, right: object) -> bool:
    if isinstance(given, (int, float)) and isinstance(right, (int, float)):
        return math.isclose(given, right)
    if isinstance(given, (list, tuple)) and isinstance(right, (list, tuple)):
        return list(given) == list(right)
    return given == right
