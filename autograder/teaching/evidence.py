"""What cells found out about claims, and the verdicts that follow from it. No verdict is typed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from ..measuring.duel import Ratio
from ..measuring.units import times
from .claims import CLAIMS, WORTH_IT, ScoreError, claim_called

Kind = Literal["timing", "counting", "behaviour", "documentation", "code"]
MIME = "application/vnd.fast-pytorch.evidence+json"
NAMES: dict[str | None, str] = {None: "", "cpu": "CPU", "cuda": "GPU", "mps": "Apple GPU"}


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
            force_setattr(self, "unless" if lacks else "when", claim.when)
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
    """``word`` on the advice; ``rules`` are sentences by where they hold, such as "On 2 GPUs", or "" where a
    device makes no difference; ``code`` is the verdict on the article's own, if any was run.
    """

    word: Advice
    rules: Mapping[str, str]
    code: Code | None

    @property
    def rule(self) -> str:
        """All of them."""
        return " ".join(
            f"{on}, {rule[:1].lower()}{rule[1:]}" if on else rule for on, rule in self.rules.items()
        )


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
    worst = max((Code(one.word) for one in code), key=list(Code).index, default=None)
    rules, words = {}, set[Advice | None]()
    for kind in NAMES:
        if there := [one for one in advice if one.on == kind]:
            word, rule = _verdict(claim, kind, there)
            words.add(word)
            # Of each device the fewest: how little a range rests on is a part of it.
            processes = dict(sorted(((str(one.device), one.processes) for one in there), reverse=True))
            where = machines(kind, processes) if kind else ""
            rules[where[:1].upper() + where[1:]] = rule
    if said and not advice:
        rules[""] = f"When {CLAIMS[claim].use}: so the documentation; there is no figure yet."
    words.discard(None)
    nothing = Advice.NEEDS_A_GPU if CLAIMS[claim].device == "cuda" else Advice.UNKNOWN
    word = Advice.HOLDS_WHEN if len(words) > 1 else words.pop() if words else nothing
    return Score(word or nothing, rules, worst)


def machines(kind: str, processes: Mapping[str, int]) -> str:
    """What a range rests on, as "on 2 CPUs, in one process each"; ``processes`` by device of this kind."""
    number, once = len(processes), sum(count < 2 for count in processes.values())
    on = f"on {number} {NAMES[kind]}s" if number > 1 else f"on one {NAMES[kind]}"
    how = "in one process each" if number > 1 else "in one process"
    return f"{on}, {'some ' * (once < number)}{how}" if once else on


def _verdict(claim: str, kind: str | None, found: Sequence[Evidence]) -> tuple[Advice | None, str]:
    try:
        return _advice(claim, found)
    except ScoreError:
        if kind in (None, "cpu"):
            raise
    held = {one.holds for one in found if not one.is_price}
    word = Advice.HOLDS_WHEN if len(held) > 1 else Advice.HOLDS if held == {True} else Advice.DOES_NOT_PAY
    unknown = "; what it depends on is not known" if len(held) > 1 else ""
    return word, f"When {CLAIMS[claim].use}: {figures(found)}{unknown}."


def _advice(claim: str, found: Sequence[Evidence]) -> tuple[Advice | None, str]:
    """The word on cells of one kind of device, None where they only say a price, and the rule."""
    use, prices = CLAIMS[claim].use, [one for one in found if one.is_price]
    found = [one for one in found if not one.is_price]
    if not found:
        return None, f"When {use}: {figures(prices)}."
    plain = [one for one in found if not one.side]
    conditions = dict.fromkeys(one.side for one in found if one.side)
    if not conditions:
        first = plain[0]
        if other := next((one for one in plain if one.holds != first.holds), None):
            both = f"{first.what!r} and {other.what!r}"
            raise ScoreError(f"{claim}: {both} say opposite things. Name the condition that parts them.")
        if not (first.holds or CLAIMS[claim].measurable):
            return Advice.WRONG, CLAIMS[claim].instead
        reach = figures(prices or plain)
        word = Advice.HOLDS if first.holds else Advice.DOES_NOT_PAY
        return word, f"When {use}{reach and f': {reach}'}."
    rules = [f"When {use}: {reach}."] if (reach := figures(plain)) else []
    for condition in conditions:
        on = [one for one in found if one.when == condition]
        off = [one for one in found if one.unless == condition]
        where = f"{claim}: the condition {condition!r}"
        if not (on and off):
            raise ScoreError(f"{where} has cells on one side only.")
        if not all(one.holds for one in on) or any(one.holds for one in off):
            raise ScoreError(f"{where} does not part cells that hold from those that do not.")
        parts = f"When {condition}: {figures(on)}; otherwise {figures(off) or 'not'}."
        rules.append(parts if figures(on) else f"Only when {condition}.")
    if not all(one.holds for one in plain):
        raise ScoreError(f"{claim}: a cell without a condition does not hold: {plain[0].what!r}.")
    return Advice.HOLDS_WHEN, " ".join(rules)


def figures(found: Sequence[Evidence]) -> str:
    """How far their ratios reach, as one says it; nothing where there is none."""
    if not (ratios := _ends(found)):
        return ""
    counted = {one.what.partition(",")[0]: "" for one in found if one.kind == "counting"}
    more, less, same = "faster", "slower", "as fast"
    if counted:
        more, less, same = (f"{word} {' and '.join(counted)}" for word in ("fewer", "more", "as many"))
    low, high = min(ratios), max(ratios)
    if low > 1 / WORTH_IT and high < WORTH_IT:
        return f"about {same} ({_reach(low, high)})"
    if low > 1 / WORTH_IT:
        return f"{_reach(max(low, 1), high)} {more}"
    if high < WORTH_IT:
        return f"{_reach(max(1 / high, 1), 1 / low)} {less}"
    return f"{times(1 / low)} {less} to {times(high)} {more}"


def span(found: Iterable[Evidence]) -> str:
    """From the least of their ratios to the most, over all processes; nothing where there is none."""
    ends = _ends(found)
    return _reach(min(ends), max(ends)) if ends else ""


def _ends(found: Iterable[Evidence]) -> list[float]:
    """What a range must reach: of one process it is the median that counts."""
    ratios = [(one.ratio, one.processes) for one in found if one.ratio]
    return [end for one, number in ratios for end in ((one.low, one.high) if number > 1 else [one.median])]


def _reach(low: float, high: float) -> str:
    return " to ".join(dict.fromkeys(map(times, (low, high))))
