"""How many races may be timed at once on a machine with many cores that share its memory? A simulation;
writes data/side_by_side.json.

A race has two cores to itself, so sixteen cores could time eight. What they still share is the way to memory.
Here, each race is in turn away from memory (copying processes, sending, comparing) and at it, for times that
are exponential. A block of calls that waits for memory for a part of its time is slowed in that part while
more bandwidth is asked for than there is. Slow and fast blocks follow one another, so most of it strikes
both alike; what does not is noise, on top of that of a launch alone. The verdict is ``decide``'s.

    python benchmarks/side_by_side.py  # five minutes
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from autograder.measuring.decide import decide
from autograder.sandbox.racing.launches import MOST_LAUNCHES, PAIRS
from autograder.sandbox.submissions.supervisor import ERRORS

OUTPUT = Path(__file__).resolve().parents[1] / "data" / "side_by_side.json"
RATIOS = (0.8, 0.9, 1.1, 1.25)  # true, over the one asked for
# The part of a block's time that waits for memory.
WORKS = {"pure Python": 0.02, "arithmetic": 0.2, "8 MB element-wise": 0.9}
AT_ONCE = (1, 2, 4, 8)
# So many cores at full bandwidth fill the machine's: about two on the machine of data/judge.json, four to
# eight on servers.
FILLED_BY = (2, 4, 8)
AT_MEMORY, AWAY = 0.010, 0.030  # seconds on the mean, of a race
BLOCK = 0.010  # seconds of the given version's block
LAUNCH = 0.15  # seconds that a launch takes beside its blocks
NOISE = 0.06  # standard deviation of a launch's log-ratio with nothing beside it
VERDICTS = 500  # for each ratio


def at_memory(others: int, source: random.Random) -> Iterator[tuple[float, int]]:
    """Seconds, and how many of the other races are at memory during them; without end."""
    share = AT_MEMORY / (AT_MEMORY + AWAY)
    there = [source.random() < share for _ in range(others)]
    while others:
        rates = [1 / (AT_MEMORY if one else AWAY) for one in there]
        yield source.expovariate(sum(rates)), sum(there)
        (changes,) = source.choices(range(others), rates)
        there[changes] = not there[changes]
    yield math.inf, 0


class Machine:
    """What one race finds while ``others`` run beside it, ``filled_by`` cores filling the bandwidth."""

    def __init__(self, others: int, filled_by: float, source: random.Random) -> None:
        self._filled_by, self._beside = filled_by, at_memory(others, source)
        self._left, self._at_memory = next(self._beside)

    def takes(self, seconds: float, waiting: float) -> float:
        """Seconds for what alone takes ``seconds``, a part of them ``waiting`` for memory."""
        took = 0.0
        while True:
            slower = max(1.0, (1 + self._at_memory) / self._filled_by)
            speed = 1 / (1 - waiting + waiting * slower)
            if seconds <= self._left * speed:
                self._left -= seconds / speed
                return took + seconds / speed
            seconds, took = seconds - self._left * speed, took + self._left
            self._left, self._at_memory = next(self._beside)


def verdict(machine: Machine, work: str, true: float, source: random.Random) -> tuple[str, float]:
    """The word of one race, and its seconds."""
    seconds = 0.0

    def launches() -> Iterator[float]:
        nonlocal seconds
        for _ in range(MOST_LAUNCHES):
            logs = []
            for _ in range(PAIRS):
                slow, fast = (machine.takes(alone, WORKS[work]) for alone in (BLOCK, BLOCK / true))
                logs.append(math.log(slow / fast))
                seconds += slow + fast
            seconds += machine.takes(LAUNCH, AT_MEMORY / (AT_MEMORY + AWAY))
            yield math.exp(median(logs) + source.gauss(0, NOISE))

    return decide(launches(), ERRORS["now"], strays_are_rare=True).word, seconds


def main() -> None:
    rows = []
    for filled_by in FILLED_BY:
        for work in WORKS:
            for races in AT_ONCE:
                source = random.Random(0)
                machine = Machine(races - 1, filled_by, source)
                found = [
                    (true, *verdict(machine, work, true, source)) for true in RATIOS for _ in range(VERDICTS)
                ]
                wrong = [
                    word == "slower" if true > 1 else word in ("faster", "as fast") for true, word, _ in found
                ]
                minutes = sum(seconds for _, _, seconds in found) / races / 60
                rows.append(
                    {
                        "filled_by": filled_by,
                        "work": work,
                        "races_at_once": races,
                        "verdicts": len(found),
                        "wrong": sum(wrong),
                        "undecided": sum(word == "undecided" for _, word, _ in found),
                        "verdicts_a_minute": round(len(found) / minutes, 1),
                    }
                )
                print(*rows[-1].values(), sep="\t", flush=True)
    lines = ",\n ".join(map(json.dumps, rows))
    OUTPUT.write_text(f'{{"simulated": [\n {lines}\n]}}\n')


if __name__ == "__main__":
    main()
