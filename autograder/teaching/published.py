"""What others published on the claims: their figures, and the verdicts that follow from these.

They stand in ``data/published``; ``docs/published.md`` has the rules. No figure of this course is among them,
and none of them decides a verdict of the course.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

import msgspec

from ..files import read_csv
from ..measuring.units import times
from ..show import show_markdown
from .claims import CLAIMS, ScoreError, made

FOLDER = Path(__file__).resolve().parents[2] / "data" / "published"
# So many pairs of a table are enough without a second source; such a part must be for a claim, or against it.
ENOUGH, HOLDS = 30, 0.75


class Point(NamedTuple):
    """One ratio, above 1 where the advice is better; ``row`` is its place in a picture, ``name`` the case."""

    ratio: float
    row: str
    name: str


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure, or those pairs of a ``table`` that are of one ``kind``; ``docs/published.md`` has all keys.

    ``claim`` may be several, with spaces between. ``when`` names the condition that it stands for, ``unless``
    the one that it lacks, ``aside`` why it does not count. ``rows`` are the columns that name a row of a
    picture.
    """

    compares: str
    without: str
    following: str
    unit: str
    title: str
    address: str
    claim: str = ""
    before: float | int | None = None
    after: float | int | None = None
    better: Literal["less", "more"] | None = None
    work: int = 1
    ratio: float | int | None = None
    ratio_most: float | int | None = None
    device: str = "GPU not named"
    software: str | None = None
    date: str | None = None
    also: str | None = None
    licence: str | None = None
    quote: str | None = None
    note: str | None = None
    own: bool = False
    when: str | None = None
    unless: str | None = None
    aside: str | None = None
    table: str | None = None
    kind: str = ""
    rows: str = ""

    @property
    def points(self) -> Sequence[Point]:
        """Its ratios; none where it has no figure."""
        if self.table:
            return _pairs(self.table, self.kind, self.rows, self.better == "less")
        device = re.sub(r"NVIDIA |GeForce |Tesla |(-SXM|-PCIE|[- ]\d+ ?GB| ?[,;(/]).*", "", self.device)
        row = f"{device}, {self.date[:4] if self.date else 'no date'}"
        return [Point(self.ratio, row, self.compares)] if self.ratio else []

    @property
    def source(self) -> str:
        """What is one source: a thread, or a repository."""
        thread = re.match(r"https://github\.com/[^/]+/[^/]+(/(issues|pull)/\d+)?", self.address)
        return thread[0] if thread else self.address


@cache
def _pairs(table: str, kind: str, rows: str, less: bool) -> Sequence[Point]:
    found = []
    for pair in read_csv(FOLDER / f"{table}.csv"):
        if pair["kind"] == kind:
            gpus, ratio = int(pair.get("gpus", 1)), float(pair["after"]) / float(pair["before"])
            row = ", ".join(f"{gpus} GPUs" if name == "gpus" else pair[name] for name in rows.split())
            found.append(Point(gpus / ratio if less else ratio, row, pair["model"]))
    return found


@cache
def collection(path: Path = FOLDER / "figures.toml") -> tuple[dict[str, str], dict[str, Published]]:
    """The reasons why a figure may stand aside, and all figures and kinds of tables by name, as in the file.

    It is read when it is asked for: the course's own lies where no submission's code can see it. Raises
    ScoreError for one that breaks a rule which a program can see, with its name.
    """
    content = msgspec.toml.decode(path.read_bytes())
    found = {name: made(Published, name, given, path) for name, given in content["figures"].items()}
    for table, given in content.get("tables", {}).items():
        for group in given.pop("groups"):
            name = f"{table}, {group['kind']}"
            found[name] = made(Published, name, {**given, **group, "table": table}, path)
    for name, one in found.items():
        for wrong in _wrong(one, content["aside"]):
            raise ScoreError(f"{path.name}, {name}: {wrong}")
    return content["aside"], found


def _wrong(one: Published, reasons: Iterable[str]) -> Iterable[str]:
    """What breaks the rules, in sentences."""
    if not one.address.startswith("https://"):
        yield f"a source has an address that begins with https://, not {one.address!r}."
    for claim in set(one.claim.split()) - set(CLAIMS):
        yield f"there is no claim {claim!r}."
    if len([side for side in (one.when, one.unless, one.aside) if side]) > 1:
        yield "it stands on one side: when, unless or aside."
    if one.aside not in (None, *reasons):
        yield f"aside may be {', '.join(reasons)}, not {one.aside!r}."
    if one.claim and not (one.ratio or one.aside or one.table):
        yield "without a ratio it stands aside."
    if one.date and not re.fullmatch(r"(19|20)\d\d(-[01]\d(-[0-3]\d)?)?", one.date):
        yield f"the date {one.date!r} is no year, month or day, as 2025-10-07."
    if one.before and one.after:
        if not one.better:
            yield "which is better, less or more?"
        gain = one.work * (one.before / one.after if one.better == "less" else one.after / one.before)
        if one.ratio and abs(gain - one.ratio) > 0.006 * one.ratio + 0.0005:
            yield f"{one.before} and {one.after} give {gain:.4g}, and not {one.ratio}."
    if one.quote and not one.licence:
        yield "a source without a licence is not quoted."


def published_on(claim: str) -> list[Published]:
    """What is published on a claim, in the order of the file."""
    return [one for one in collection()[1].values() if claim in one.claim.split()]


def in_words(name: str) -> str:
    """One of them as a line of Markdown, with its source."""
    reasons, there = collection()
    one = there[name]
    sides = f"{one.before:,.7g} → {one.after:,.7g} {one.unit}" if one.before and one.after else ""
    ends = " to ".join(times(ratio) for ratio in (one.ratio, one.ratio_most) if ratio)
    ratio = f"**{ends}**" if ends else f"{len(one.points):,} pairs" if one.table else ""
    side = f"when {one.when}" if one.when else f"not when {one.unless}" if one.unless else ""
    side = f"not counted ({one.aside}: {reasons[one.aside]})" if one.aside else side
    source = f"[{one.title}]({one.address}){' (their own)' if one.own else ''}"
    facts = (sides, ratio, "" if one.table else one.device, one.software, one.date, source, side)
    said = f"- **{name}** {one.compares}: {one.without} → {one.following}: {'; '.join(filter(None, facts))}."
    return f"{said} {one.note or ''}".rstrip()


def published_figures(*names: str) -> None:
    """Show some of them with their sources. Raises KeyError for a name that there is not."""
    show_markdown("\n".join(map(in_words, names)))


def ratios(found: Iterable[Published]) -> list[float]:
    """All ratios, the least first."""
    return sorted(point.ratio for one in found for point in one.points)


def decide(claim: str) -> tuple[str, str, str]:
    """The word on a claim by what is published, the figures in a sentence, and what is behind them."""
    found = published_on(claim)
    counted = [one for one in found if not one.aside]
    need, rests_on = CLAIMS[claim].at_least, _rests_on(found, counted)
    for condition in dict.fromkeys(one.when for one in counted if one.when):
        on = [one for one in counted if one.when == condition]
        off = [one for one in counted if one.unless == condition]
        parted = off and _share(on, need) >= HOLDS and _share(off, need) <= 1 - HOLDS
        if parted and _enough(on):
            sides = (gains(ratios(side), need) for side in (on, off))
            return "holds when …", f"When {condition}: {'; otherwise '.join(sides)}.", rests_on
    if not counted:
        return "no figure counts", "", rests_on
    share, said = _share(counted, need), gains(ratios(counted), need)
    word = "holds" if share >= HOLDS else "does not pay" if share <= 1 - HOLDS else "mixed"
    return word if _enough(counted) else "one source only", f"{said[0].upper()}{said[1:]}.", rests_on


def _enough(found: Sequence[Published]) -> bool:
    pairs = sum(len(one.points) for one in found if one.table)
    return pairs >= ENOUGH or len({one.source for one in found}) > 1


def _share(found: Sequence[Published], need: float) -> float:
    """The part that is for the claim."""
    all_of_them = ratios(found)
    return sum(ratio >= need for ratio in all_of_them) / len(all_of_them)


def gains(ratios: Sequence[float], need: float) -> str:
    """In words, how far these ratios reach, the least first."""
    span = " to ".join(dict.fromkeys((times(ratios[0]), times(ratios[-1]))))
    reach, slower = sum(ratio >= need for ratio in ratios), sum(ratio < 1 for ratio in ratios)
    if len(ratios) >= ENOUGH:
        part = f"{100 * reach / len(ratios):.0f} % reach {need:g}×"
        return f"median {times(median(ratios))} of {len(ratios):,}, {part}, {slower:,} slower, {span}"
    return span if reach in (0, len(ratios)) else f"{span}, {reach} of {len(ratios)} reach {need:g}×"


def _rests_on(found: Sequence[Published], counted: Sequence[Published]) -> str:
    """How many figures and pairs of how many sources, and what does not count."""
    numbers = Counter("pairs" if one.table else "figures" for one in counted for _ in one.points)
    sources = {one.source: one.own for one in counted}
    numbers["sources"] = len(sources)
    numbers["their own"] = sum(sources.values())
    if any(one.when for one in counted):
        numbers["on neither side"] = len(ratios(one for one in counted if not (one.when or one.unless)))
    reasons = Counter(one.aside for one in found for _ in range(len(one.points) or 1) if one.aside)
    said = [f"Based on: {_listed(numbers)}."] if counted else []
    return " ".join(said + [f"Not counted: {_listed(reasons)}."] * bool(reasons))


def _listed(numbers: Counter[str]) -> str:
    return ", ".join(f"{what} {number:,}" for what, number in numbers.items() if number)
