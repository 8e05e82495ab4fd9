"""What the clinics share: whether a diagnosis of pieces of code can be read, and what in it is right.

A diagnosis says of each piece, by its name, which line costs the time, why, and how many times as fast the
piece will be without it. Where nothing is wrong, these are ``""``, ``"nothing"`` and 1.
"""

import linecache
from collections.abc import Callable, Collection, Mapping
from types import FunctionType
from typing import Any, TypeAlias

import torch

from ..measuring.clocks import MakesInputs
from .race import gains, is_near

Diagnosis: TypeAlias = Mapping[str, tuple[str, str, float]]
# Of each piece its cause, and what the course's mended piece gained.
Truth: TypeAlias = Mapping[str, tuple[str, float]]

NEAR = 1.5  # a foretold gain is right within this factor


def few(inputs: Callable[[torch.Generator, str, int], tuple[Any, ...]]) -> list[MakesInputs]:
    """Such inputs with nothing to work on, and with one thing: ``none, one = few(inputs)``."""

    def none(generator: torch.Generator, device: str) -> tuple[Any, ...]:
        return inputs(generator, device, 0)

    def one(generator: torch.Generator, device: str) -> tuple[Any, ...]:
        return inputs(generator, device, 1)

    return [none, one]


def readable(said: Diagnosis, pieces: Mapping[str, FunctionType], causes: Collection[str]) -> dict[str, str]:
    """Of each piece that a diagnosis names, "fine", or what is wrong with the form of what it says.

    A line must stand in the piece's cell, once, whatever its spaces. Raises TypeError or ValueError where
    it does not say three things of a piece.
    """
    found = {}
    for name, (line, cause, gain) in said.items():
        cell = linecache.getlines(pieces[name].__code__.co_filename) if name in pieces else []
        there = [_tidy(one) for one in cell].count(_tidy(line)) if cell else 1
        if cause not in causes:
            found[name] = "its cause is no word of CAUSES"
        elif cause == "nothing" and (line, gain) != ("", 1):
            found[name] = "with nothing wrong, it has no line, and gains 1"
        elif cause != "nothing" and there != 1:
            found[name] = f"its line is there {there} times"
        else:
            found[name] = "fine" if gain >= 1 else "what is mended is not slower than before"
    return found


def right_lines(said: Diagnosis, places: str) -> list[str]:
    """The pieces whose line is one of those that count: ``places`` has one a line, as "piece: line"."""
    known = [_tidy(place) for place in places.splitlines()]
    return _told("lines", [name for name, (line, _, _) in said.items() if _tidy(f"{name}: {line}") in known])


def right_causes(said: Diagnosis, truth: Truth) -> list[str]:
    """The pieces whose cause is the true one."""
    return _told("causes", [name for name, (_, cause, _) in said.items() if cause == truth[name][0]])


def right_gains(said: Diagnosis, truth: Truth, pieces: Mapping[str, FunctionType]) -> list[str]:
    """The pieces whose gain is near ours, or near that of an answer that passed its race in this session."""
    yours = {name: gains.get(piece, 0.0) for name, piece in pieces.items()}
    print("Yours:", {name: f"{gain:.3g}" for name, gain in yours.items()})
    reached = {name: (truth[name][1], yours[name]) for name in said}
    near = (
        name for name, (_, _, gain) in said.items() if any(is_near(gain, one, NEAR) for one in reached[name])
    )
    return _told("gains", list(near))


def _tidy(line: str) -> str:
    return " ".join(line.split())


def _told(what: str, right: list[str]) -> list[str]:
    print(f"{len(right)} of 10 {what}: {', '.join(right)}")
    return right
