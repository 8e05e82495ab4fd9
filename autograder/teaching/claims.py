"""The claims of five articles and of the documentation: what each promises, and what would decide it.

They stand in ``claims.toml``.
"""

from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

Made = TypeVar("Made")

# A claim of "faster" or "less memory" holds where the whole interval says 10 % or more, unless it says itself
# how much; less is nothing to change code for.
WORTH_IT = 1.1


class ScoreError(ValueError):
    """A claim that is no claim, or cells that do not make a verdict; one sentence for the author."""


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """Who makes claims. ``link`` is None where no address is known."""

    title: str
    link: str | None = None
    kind: Literal["article", "documentation"] = "article"


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """What is said, and what would decide it. ``words`` are the source's own, or its code; ``link`` is the
    page of the documentation that has them.

    ``use`` is the situation in which somebody would follow it, after "when". ``promises`` is what a cell must
    show: a "speed" or a "memory" ratio of ``at_least`` or more, "correctness", or that something is there at
    all ("existence"). ``device`` is the one that it speaks of (None: any): cells on others do not count.
    ``cudnn``: it is about the library that NVIDIA's GPUs take for convolutions. ``cost``: what it promises
    costs time, and a ratio says how much; so no ratio speaks against it. ``instead``: what is so where cells
    find it wrong. ``when``: what parts its comparisons; those with one of ``lacks`` in their titles lack it.
    Their calls do not say so, because these are read before somebody guesses.
    """

    says: str
    use: str
    promises: Literal["speed", "memory", "correctness", "existence"]
    device: Literal["cpu", "cuda"] | None = None
    at_least: float = WORTH_IT
    cudnn: bool = False
    cost: bool = False
    instead: str = "It is not so."
    words: str | None = None
    link: str | None = None
    when: str | None = None
    lacks: list[str] = []

    @property
    def measurable(self) -> bool:
        """Whether a ratio decides it."""
        return self.promises in ("speed", "memory")


class _File(Struct, forbid_unknown_fields=True):
    sources: dict[str, dict[str, Any]]
    claims: dict[str, dict[str, Any]]


def read(path: Path) -> tuple[dict[str, Source], dict[str, Claim]]:
    """The sources, by the first letter of their claims, and the claims, in the order of the file.

    Raises ScoreError for a file that does not say what it must, with the ID of the claim.
    """
    try:
        content = msgspec.toml.decode(path.read_bytes(), type=_File)
    except msgspec.DecodeError as error:
        raise ScoreError(f"{path.name}: {error}") from None
    sources = {name: made(Source, name, given, path) for name, given in content.sources.items()}
    claims = {name: made(Claim, name, given, path) for name, given in content.claims.items()}
    for name in claims:
        if name[0] not in sources:
            raise ScoreError(f"{path.name}, {name}: there is no source {name[0]!r}.")
    return sources, claims


def made(kind: type[Made], name: str, given: dict[str, Any], path: Path) -> Made:
    """A source or a claim, of what its table in the file says."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise ScoreError(f"{path.name}, {name}: {error}") from None


SOURCES, CLAIMS = read(Path(__file__).with_name("claims.toml"))


def claim_called(name: str) -> Claim:
    """The claim with this ID, like "C8". Raises ScoreError where there is none."""
    if name not in CLAIMS:
        raise ScoreError(f"There is no claim {name!r}. The claims are {', '.join(CLAIMS)}.")
    return CLAIMS[name]
