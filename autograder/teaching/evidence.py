"""What cells found out about claims, and the verdicts that follow from it. No verdict is typed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from msgspec import Struct

from ..measuring.duel import Ratio
from ..measuring.units import times
from .claims import CLAIMS, ScoreError, claim_called

Kind = Literal["timing", "counting", "behaviour", "documentation", "code"]
MIME = "application/vnd.fast-pytorch.evidence+json"


class Advice(str, Enum):
    """What became of a claim, in the order of the pages; the values are for people."""

    HOLDS = "holds"
    HOLDS_WHEN = "holds when …"
    DOES_NOT_PAY = "does not pay"
    WRONG = "wrong"
    NEEDS_A_GPU = "not measured (needs a GPU)"
    UNKNOWN = "not measured"
    __str__ = str.__str__


class Code(str, Enum):
    """What became of an article's own code; the worst is the last."""

    RUNS = "runs"
    OUTDATED = "outdated"
    WRONG = "wrong"
    __str__ = str.__str__


class Evidence(Struct, frozen=True, omit_defaults=True):
    """What one cell found out about a claim.

    ``what`` is the title of a comparison, or a sentence. ``holds`` is None where it could not be found out;
    for ``kind`` "code" it is whether the article's own code does what the article says, and ``outdated``
    whether it warns. ``when`` is the condition that the cell stands for, ``unless`` the one that it lacks;
    a comparison has it from its claim. ``ratio`` is how many times faster, or smaller, on ``device`` of the
    kind ``on`` ("cpu", "cuda", "mps"), in so many ``processes``; ``here``: it is a figure of this machine's
    own, which decides nothing.
    """

    claim: str
    what: str
    kind: Kind
    holds: bool | None = None
    when: str | None = None
    unless: str | None = None
    outdated: bool = False
    link: str | None = None
    chapter: str = ""
    device: str | None = None
    on: str | None = None
    ratio: Ratio | None = None
    processes: int = 0
    here: bool = False

    def __post_init__(self) -> None:
        claim = claim_called(self.claim)
        if self.kind == "timing" and claim.when:
            lacks = any(part in self.what for part in claim.lacks)
            object.__setattr__(self, "unless" if lacks else "when", claim.when)
        if self.when and self.unless:
            raise ScoreError(f"{self.claim}, {self.what!r}: a cell stands on one side of one condition.")
        if self.kind in ("timing", "counting") and not (claim.measurable or claim.cost):
            raise ScoreError(
                f"{self.claim} promises {claim.promises}, so the figure of {self.what!r} decides nothing. "
                "Give the comparison no claim."
            )

    @property
    def side(self) -> str | None:
        """The condition that it stands for, on either side."""
        return self.when or self.unless

    @property
    def side_in_words(self) -> str:
        """The same with "when", or "not when"."""
        return f"when {self.when}" if self.when else f"not when {self.unless}" if self.unless else ""

    @property
    def is_price(self) -> bool:
        """Whether it says what the advice costs, and not whether it holds."""
        return CLAIMS[self.claim].cost and self.ratio is not None

    @property
    def word(self) -> str:
        """What it says of the claim, or of the article's code."""
        if self.kind == "code":
            return Code.WRONG if not self.holds else Code.OUTDATED if self.outdated else Code.RUNS
        if self.holds is None:
            return Advice.UNKNOWN
        if self.is_price:
            return "its price"
        return {"documentation": "documented"}.get(self.kind, Advice.HOLDS) if self.holds else "does not hold"


def decides(claim: str, device: str, *, rocm: bool = False) -> bool:
    """Whether a figure from this kind of device ("cpu", "cuda", "mps") can decide the claim.

    On AMD's GPUs (``rocm``) another library stands where a claim speaks of cuDNN.
    """
    return CLAIMS[claim].device in (None, device) and not (rocm and CLAIMS[claim].cudnn)


def holds(claim: str, ratio: Ratio) -> bool:
    """What a measured ratio says about a claim: it holds where the whole interval does."""
    return ratio.low >= claim_called(claim).at_least


@dataclass(frozen=True)
class Score:
    """``word`` on the advice; ``rule``, a sentence that begins with "When"; ``code`` on the article's own, if
    any was run. ``rests_on`` are the kinds of evidence for the advice.
    """

    word: Advice
    rule: str
    code: Code | None
    rests_on: Sequence[Kind]


def judge(claim: str, found: Iterable[Evidence]) -> Score:
    """The verdicts on a claim, for each kind of device. Raises ScoreError where its cells contradict each
    other, but not on a GPU: the record of one that no author has may come in any day.

    Documentation decides nothing about speed or memory. Where nothing was measured, it gives the rule. This
    machine's own figures decide nothing.
    """
    mine = [one for one in found if one.claim == claim and not one.here]
    code = [one for one in mine if one.kind == "code"]
    said = [one for one in mine if one.kind == "documentation" and CLAIMS[claim].measurable]
    advice = [one for one in mine if one.holds is not None and one not in code + said]
    word, rule = _on_each_kind(claim, advice)
    if said and not advice:
        rule = f"When {CLAIMS[claim].use}: so the documentation; there is no figure yet."
    worst = max((Code(one.word) for one in code), key=list(Code).index, default=None)
    return Score(word, rule, worst, tuple(dict.fromkeys(one.kind for one in advice)))


def _on_each_kind(claim: str, found: Sequence[Evidence]) -> tuple[Advice, str]:
    verdicts = {}
    for kind in sorted({one.on for one in found if one.on}) or ["cpu"]:
        there = [one for one in found if one.on in (None, kind)]
        try:
            verdicts[kind] = _advice(claim, there)
        except ScoreError:
            if kind == "cpu":
                raise
            verdicts[kind] = _not_parted(claim, there)
    words, rules = {word for word, _ in verdicts.values()}, []
    for kind, (_, rule) in verdicts.items():
        processes = sorted(
            ((str(one.device), one.processes) for one in found if one.on == kind), reverse=True
        )
        if (timed := dict(processes)) and rule:  # of each device the fewest
            rule = f"O{machines(kind, timed)[1:]}, {rule[:1].lower()}{rule[1:]}"
        rules.append(rule)
    return words.pop() if len(words) == 1 else Advice.HOLDS_WHEN, " ".join(rules)


def machines(kind: str, processes: Mapping[str, int]) -> str:
    """What a range rests on, as "on 2 CPUs, in one process each"; ``processes`` by device of this kind."""
    name = {"cpu": "CPU", "cuda": "GPU", "mps": "Apple GPU"}[kind]
    number, once = len(processes), sum(count < 2 for count in processes.values())
    on = f"on {number} {name}s" if number > 1 else f"on one {name}"
    how = "in one process each" if number > 1 else "in one process"
    return f"{on}, {'some ' * (once < number)}{how}" if once else on


def _not_parted(claim: str, found: Sequence[Evidence]) -> tuple[Advice, str]:
    """The verdict of cells that their conditions do not part as they should."""
    held = {one.holds for one in found if not one.is_price}
    word = Advice.HOLDS_WHEN if len(held) > 1 else Advice.HOLDS if held == {True} else Advice.DOES_NOT_PAY
    unknown = "; on what it depends is not known" if len(held) > 1 else ""
    return word, f"When {CLAIMS[claim].use}: {_figures(found)}{unknown}."


def _advice(claim: str, found: Sequence[Evidence]) -> tuple[Advice, str]:
    use, prices = CLAIMS[claim].use, [one for one in found if one.is_price]
    found = [one for one in found if not one.is_price]
    if not found:
        return Advice.NEEDS_A_GPU if CLAIMS[claim].device == "cuda" else Advice.UNKNOWN, ""
    plain = [one for one in found if not one.side]
    conditions = dict.fromkeys(one.side for one in found if one.side)
    if not conditions:
        first = plain[0]
        if other := next((one for one in plain if one.holds != first.holds), None):
            both = f"{first.what!r} and {other.what!r}"
            raise ScoreError(f"{claim}: {both} say opposite things. Name the condition that parts them.")
        figures = _figures(prices or plain)
        no = Advice.DOES_NOT_PAY if CLAIMS[claim].measurable else Advice.WRONG
        return Advice.HOLDS if first.holds else no, f"When {use}{figures and f': {figures}'}."
    rules = [f"When {use}: {figures}."] if (figures := _figures(plain)) else []
    for condition in conditions:
        on = [one for one in found if one.when == condition]
        off = [one for one in found if one.unless == condition]
        where = f"{claim}: the condition {condition!r}"
        if not (on and off):
            raise ScoreError(f"{where} has cells on one side only.")
        if not all(one.holds for one in on) or any(one.holds for one in off):
            raise ScoreError(f"{where} does not part cells that hold from those that do not.")
        rules.append(f"When {condition}: {_figures(on) or 'it holds'}; otherwise {span(off) or 'not'}.")
    if not all(one.holds for one in plain):
        raise ScoreError(f"{claim}: a cell without a condition does not hold: {plain[0].what!r}.")
    return Advice.HOLDS_WHEN, " ".join(rules)


def _figures(found: Sequence[Evidence]) -> str:
    """Their span, and what was counted."""
    counted = {one.what.partition(",")[0] if one.kind == "counting" else "" for one in found if one.ratio}
    fewer = f" fewer {counted.pop()}" if len(counted) == 1 and "" not in counted else ""
    return span(found) + fewer


def span(found: Iterable[Evidence]) -> str:
    """From the least of their ratios to the most, over all processes; nothing where there is none."""
    ratios = [(one.ratio, one.processes) for one in found if one.ratio]
    ends = [
        end for one, processes in ratios for end in ((one.low, one.high) if processes > 1 else [one.median])
    ]
    return " to ".join(dict.fromkeys(times(end(ends)) for end in (min, max))) if ends else ""
