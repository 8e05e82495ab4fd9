"""How often is a speed judge wrong? Measures ours beside what people use today; writes data/judge.json.

True ratios are made by construction: the given side repeats a unit of work m times, the answer's side 20
times. Every judge decides whether the answer is as fast as given (threshold 1), so the true ratio over the
threshold is m / 20. A verdict of ours is a sequence of launches; the launches of a cell are recorded for real
and sequences of them are drawn with replacement. The other judges' verdicts are all real, each in a fresh
process.

    python benchmarks/judge.py           # about 15 minutes; leave the machine alone
    python benchmarks/judge.py --quick   # a small sample in under a minute, for a look and for the tests
"""

from __future__ import annotations

import os

# Before torch loads: a process with thread pools cannot be forked.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
import math
import pickle
import random
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date
from pathlib import Path
from statistics import median

import torch
from torch.utils.benchmark import Timer
from tqdm import tqdm

from autograder.measuring.decide import SignTest
from autograder.measuring.device import provenance
from autograder.measuring.duel import arguments, interleave
from autograder.measuring.launches import MOST_LAUNCHES, apart, launch, warm_up_parent
from autograder.measuring.selfcheck import check_launches

ROOT = Path(__file__).resolve().parents[1]
OURS = "launches and a sign test"
REPETITIONS = 20
GIVEN = (16, 18, 19, 20, 21, 22, 25)
ERROR = 1e-3

Work = tuple[Callable, Callable]

WORKS: dict[str, Work] = {
    "matrix product": (
        lambda generator, device: torch.rand(192, 192, generator=generator),
        lambda matrix: matrix @ matrix,
    ),
    "8 MB element-wise": (
        lambda generator, device: torch.rand(2_000_000, generator=generator),
        lambda numbers: numbers.add_(1),
    ),
    "dispatch-bound": (
        lambda generator, device: torch.rand(64, generator=generator),
        lambda numbers: [numbers.add(1) for _ in range(20)],
    ),
}


def repeated(unit: Callable, times: int) -> Callable:
    """A function that does ``unit`` ``times`` times."""

    def function(given):
        for _ in range(times):
            unit(given)

    return function


# What people use today. Each takes two callables (given, answer), the inputs, and the stored time of the
# given side on a quiet machine; and gives log(given / answer).


def one_timing(given: Callable, answer: Callable, inputs: Callable, stored: float) -> float:
    (values,) = arguments(inputs, 1, "cpu")
    answer(values)
    start = time.perf_counter()
    answer(values)
    return math.log(stored / (time.perf_counter() - start))


def best_of_five(given: Callable, answer: Callable, inputs: Callable, stored: float) -> float:
    (values,) = arguments(inputs, 1, "cpu")
    number = max(1, math.ceil(5e-3 / stored))
    times = [min(timeit.repeat(lambda f=f: f(values), number=number, repeat=5)) for f in (given, answer)]
    return math.log(times[0] / times[1])


def blocked_autorange(given: Callable, answer: Callable, inputs: Callable, stored: float) -> float:
    (values,) = arguments(inputs, 1, "cpu")
    timers = [Timer("f(values)", globals={"f": f, "values": values}) for f in (given, answer)]
    times = [timer.blocked_autorange(min_run_time=0.1).median for timer in timers]
    return math.log(times[0] / times[1])


def interleaved_wall(given: Callable, answer: Callable, inputs: Callable, stored: float) -> float:
    samples = interleave({"given": given, "answer": answer}, inputs, clock="wall", seconds=0.15)
    return math.log(samples.ratio("given", "answer").median)


OTHERS = {
    "one timing against a stored one": one_timing,
    "timeit, best of five": best_of_five,
    "blocked_autorange medians": blocked_autorange,
    "interleaved wall-clock medians": interleaved_wall,
}


def in_fresh_process(function: Callable, *given: object) -> tuple[float, float]:
    """The result of ``function(*given)`` in a forked process, and the seconds that it took."""
    start = time.perf_counter()
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            os.write(writing, pickle.dumps(function(*given)))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return pickle.loads(answer), time.perf_counter() - start


BURSTS = """
import random, time
block = bytearray(4_000_000)
while True:
    end = time.perf_counter() + random.uniform(0.005, 0.05)
    while time.perf_counter() < end:
        sum(range(2000)); block[:] = bytes(4_000_000)
    time.sleep(random.uniform(0, 0.01))
"""


@contextmanager
def load(kind: str) -> Iterator[None]:
    """Nothing for "quiet"; for "busy" two processes per core that work in bursts."""
    number = 2 * len(os.sched_getaffinity(0)) if kind == "busy" else 0
    noise = [subprocess.Popen([sys.executable, "-c", BURSTS]) for _ in range(number)]
    try:
        time.sleep(0.5 if noise else 0)
        yield
    finally:
        for process in noise:
            process.kill()
            process.wait()


def our_cell(work: Work, given: int, launches: int, verdicts: int) -> dict:
    """Record launches of one cell, and draw verdicts from them."""
    inputs, unit = work
    sides = {"given": repeated(unit, given), "answer": repeated(unit, REPETITIONS)}
    calls: dict[str, int] = {}
    logs, seconds = [], []
    with apart() as core:
        for _ in range(launches):
            start = time.perf_counter()
            logs.append(launch(sides, inputs, calls, core).log_ratio("given", "answer"))
            seconds.append(time.perf_counter() - start)
    source = random.Random(0)
    words, took = [], []
    for _ in range(verdicts):
        test, spent, number = SignTest(), 0.0, 0
        while test.word(ERROR) == "undecided" and number < MOST_LAUNCHES:
            drawn = source.randrange(launches)
            test.add(logs[drawn])
            spent += seconds[drawn]
            number += 1
        words.append(test.word(ERROR))
        took.append(spent)
    return row_of(words, took, given, launches, verdicts)


def other_cell(judge: Callable, work: Work, given: int, stored: float, verdicts: int) -> dict:
    """Real verdicts of one of the other judges."""
    inputs, unit = work
    sides = repeated(unit, given), repeated(unit, REPETITIONS)
    results = [in_fresh_process(judge, *sides, inputs, stored) for _ in range(verdicts)]
    words = ["faster" if log >= 0 else "slower" for log, _ in results]
    return row_of(words, [seconds for _, seconds in results], given, 0, verdicts)


def row_of(words: list[str], took: list[float], given: int, launches: int, verdicts: int) -> dict:
    """Counts and times of a cell. Exactly at the threshold no verdict is wrong."""
    wrong = {True: "slower", False: "faster"}[given > REPETITIONS]
    return {
        "ratio": given / REPETITIONS,
        "verdicts": verdicts,
        "wrong": 0 if given == REPETITIONS else words.count(wrong),
        "undecided": words.count("undecided"),
        "launches": launches,
        "median_s": round(median(took), 4),
        "p95_s": round(sorted(took)[int(0.95 * (len(took) - 1))], 4),
    }


def measure(launches: dict[str, int], verdicts: int, others: int, givens: tuple[int, ...]) -> dict:
    """The whole table; ``launches`` by load, ``others`` real verdicts a cell for each other judge."""
    warm_up_parent()
    noise = check_launches()
    stored = {
        (name, given): in_fresh_process(quiet_time, repeated(unit, given), inputs)[0]
        for name, (inputs, unit) in WORKS.items()
        for given in givens
    }
    rows = []
    cells = [(kind, name, given) for kind in launches for name in WORKS for given in givens]
    for kind, name, given in tqdm(cells, unit="cell", desc="judging the judges"):
        with load(kind):
            about = {"work": name, "load": kind}
            found = our_cell(WORKS[name], given, launches[kind], verdicts)
            rows.append({"judge": OURS} | about | found)
            for judge, function in OTHERS.items():
                found = other_cell(function, WORKS[name], given, stored[name, given], others)
                rows.append({"judge": judge} | about | found)
    machine = provenance("cpu") | {"noise": asdict(noise)}
    return {"machine": machine, "date": date.today().isoformat(), "rows": rows}


def quiet_time(function: Callable, inputs: Callable) -> float:
    """Wall seconds of one call, as somebody would store them: the median of 15 after a warm-up."""
    (values,) = arguments(inputs, 1, "cpu")
    return median(timeit.repeat(lambda: function(values), number=1, repeat=16)[1:])


def summary(table: dict) -> str:
    """Wrong and undecided verdicts by judge, load and distance from the threshold, all works together."""
    lines = [
        f"{'judge':34}{'load':7}{'distance':>9}{'verdicts':>10}{'wrong':>9}{'undecided':>11}{'median s':>10}"
    ]
    for judge in (OURS, *OTHERS):
        for kind in dict.fromkeys(row["load"] for row in table["rows"]):
            for distance, ratios in (("20 %", (0.8, 1.25)), ("10 %", (0.9, 1.1)), ("5 %", (0.95, 1.05))):
                cells = [
                    row
                    for row in table["rows"]
                    if (row["judge"], row["load"]) == (judge, kind) and row["ratio"] in ratios
                ]
                number = sum(row["verdicts"] for row in cells)
                if not number:
                    continue
                wrong = sum(row["wrong"] for row in cells) / number
                undecided = sum(row["undecided"] for row in cells) / number
                seconds = median(row["median_s"] for row in cells)
                lines.append(
                    f"{judge:34}{kind:7}{distance:>9}{number:10,}{wrong:9.2%}{undecided:11.2%}{seconds:10.2f}"
                )
    return "\n".join(lines)


def draw(table: dict, path: Path) -> None:
    """The chart for the README: wrong verdicts by true ratio, quiet and busy."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    colours = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#D55E00")
    loads = list(dict.fromkeys(row["load"] for row in table["rows"]))
    figure = Figure(figsize=(9, 3.8), dpi=110, layout="constrained")
    panels = figure.subplots(1, len(loads), sharey=True, squeeze=False)[0]
    for panel, kind in zip(panels, loads, strict=True):
        for colour, marker, judge in zip(colours, "os^Dv", (OURS, *OTHERS), strict=True):
            points = []
            for given in GIVEN:
                cells = [
                    row
                    for row in table["rows"]
                    if (row["judge"], row["load"], row["ratio"]) == (judge, kind, given / REPETITIONS)
                ]
                if cells and given != REPETITIONS:
                    points.append(
                        (
                            given / REPETITIONS,
                            sum(c["wrong"] for c in cells) / sum(c["verdicts"] for c in cells),
                        )
                    )
            weight = {"lw": 3, "ms": 7, "zorder": 5} if judge == OURS else {"lw": 1.4, "ms": 5}
            panel.plot(*zip(*points, strict=True), color=colour, marker=marker, label=judge, **weight)
        title = {"quiet": "quiet machine", "busy": "two busy processes per core"}[kind]
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("true ratio / ratio asked for")
        panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        panel.grid(color="#DDDDDD")
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    panels[0].set_ylabel("wrong verdicts")
    panels[0].legend(fontsize=8, frameon=False)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, facecolor="white", metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small sample in under a minute")
    parser.add_argument("--output", type=Path, default=ROOT / "data" / "judge.json")
    parser.add_argument("--chart", type=Path, default=ROOT / "docs" / "judge.png")
    options = parser.parse_args()
    if options.quick:
        table = measure({"quiet": 4}, verdicts=200, others=1, givens=(16, 20, 25))
    else:
        table = measure({"quiet": 50, "busy": 40}, verdicts=2000, others=5, givens=GIVEN)
    options.output.write_text(json.dumps(table, indent=1).replace("\n   ", " ").replace("\n  }", " }") + "\n")
    draw(table, options.chart)
    print(summary(table))
    print(f"Written to {options.output} and {options.chart}.")


if __name__ == "__main__":
    main()
