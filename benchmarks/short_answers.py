"""Are short answers timed rightly? What grading says of them, beside what a notebook says at the same time.

The work is a hash that is repeated, so its length is known and it needs no memory; the given version takes
8 ms. Writes data/short_answers.json.

    python benchmarks/short_answers.py           # about ten minutes
    python benchmarks/short_answers.py --quick   # one length, without load: to see that it works
"""

from __future__ import annotations

import os

# Before torch loads: a process with thread pools cannot be forked.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import hashlib
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from judge import grade, load
from tqdm import tqdm

from autograder.measuring.device import provenance
from autograder.measuring.duel import duel_here
from autograder.sandbox import Sandbox

OUTPUT = Path(__file__).resolve().parents[1] / "data" / "short_answers.json"
MICROSECONDS = (5, 20, 60, 200)
GIVEN = 8000  # microseconds
GRADINGS = 3
GIVEN_CELL = """
import hashlib, torch
from autograder import race


def inputs(generator, device):
    return torch.rand(1000, generator=generator)


def given_version(x):
    hashlib.pbkdf2_hmac("sha1", b"word", b"salt", {times})
    return x + 1
"""
ANSWER_CELL = """
def answer(given):
    hashlib.pbkdf2_hmac("sha1", b"word", b"salt", {times})
    return given + 1
"""


def seconds_of(times: int) -> float:
    """What so many repeats take at best."""

    def once() -> float:
        start = time.perf_counter()
        hashlib.pbkdf2_hmac("sha1", b"word", b"salt", times)
        return time.perf_counter() - start

    return min(once() for _ in range(200))


def compared(box: Sandbox, microseconds: float, each: float) -> dict[str, Any]:
    """The ratio in a notebook's race, and in gradings, of an answer of this length."""
    given = GIVEN_CELL.format(times=round(GIVEN * 1e-6 / each))
    answer = ANSWER_CELL.format(times=max(1, round(microseconds * 1e-6 / each)))
    names: dict[str, Callable[..., Any]] = {}
    exec(given.replace("from autograder import race", "") + answer, names)
    here = duel_here(names["given_version"], names["answer"], names["inputs"], threshold=1, seconds=0.5).ratio
    graded = [grade(box, given, answer, here.median / 2) for _ in range(GRADINGS)]
    ratios = [math.exp(median(one["logs"])) for one in graded if one["logs"]]
    return {
        "microseconds": microseconds,
        "notebook": round(here.median, 1),
        "graded": [round(ratio, 1) for ratio in ratios],
        "share": round(median(ratios) / here.median, 2) if ratios else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one length, without load; writes nothing")
    quick = parser.parse_args().quick
    loads, lengths = (("quiet",), (60,)) if quick else (("quiet", "busy"), MICROSECONDS)
    each = (seconds_of(10_100) - seconds_of(100)) / 10_000
    rows = []
    with Sandbox() as box:
        cells = [(kind, length) for kind in loads for length in lengths]
        for kind, length in tqdm(cells, desc="timing short answers"):
            with load(kind):
                rows.append({"load": kind} | compared(box, length, each))
            tqdm.write(json.dumps(rows[-1]))
    if not quick:
        about = {"machine": provenance("cpu"), "given_microseconds": GIVEN, "answers": rows}
        OUTPUT.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
