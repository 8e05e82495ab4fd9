"""How often is a speed judge wrong? Measures the one that grades beside what people use; writes
data/judge.json.

True ratios are made by construction: the given version repeats a unit of work m times, the answer 10 times,
and twice as fast is asked for; so the true ratio over the one asked for is m / 20. Our verdicts are races
through the whole sandbox, as in grading, each of a submission of its own. From the launches of a cell more
verdicts are drawn with replacement. The other judges' verdicts are all real, each in a fresh process.

    python benchmarks/judge.py           # about a quarter of an hour; leave the machine alone
    python benchmarks/judge.py --quick   # a small sample in a minute, for a look and for the tests
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
from datetime import date
from functools import partial
from pathlib import Path
from statistics import median

from torch.utils.benchmark import Timer
from tqdm import tqdm

from autograder.judging.outcome import MIME
from autograder.measuring.decide import Word, decide
from autograder.measuring.device import provenance
from autograder.measuring.duel import fresh_inputs, interleave
from autograder.sandbox import Sandbox, linux
from autograder.sandbox.timed_race import ERRORS, MOST_LAUNCHES

ROOT = Path(__file__).resolve().parents[1]
OURS = "the judge that grades"
ANSWERED, ASKED = 10, 2
GIVEN = (16, 18, 22, 25)
# Real verdicts of ours, by the distance of the true ratio from the one asked for, in per cent.
EACH = {10: 1, 20: 5, 25: 5}

# Kind of work -> its input, with a part for each unit; and a unit. All results stay until the end, and the
# parts are taken in an order that jumps: so the last unit finds its memory as cold as the first, and ten of
# them take ten times as long as one.
PARTS, STEP = max(GIVEN), 7
WORKS = {
    "arithmetic": (f"torch.rand({PARTS}, 256, 256, generator=generator)", "part @ part"),
    "8 MB element-wise": (f"torch.rand({PARTS}, 80_000, generator=generator)", "(part + 1).exp_().log_()"),
    "small operations": (
        f"torch.rand({PARTS}, 64, generator=generator)",
        "[part.add(1) for _ in range(100)][-1]",
    ),
    "allocation": (
        f"torch.rand({PARTS}, 1, generator=generator)",
        "[torch.empty(10_000).fill_(1) for _ in range(50)][-1]",
    ),
    "pure Python": (
        f"torch.rand({PARTS}, 5, generator=generator).tolist()",
        "sum(x * x for x in part * 1000)",
    ),
}

NOTEBOOK = """
import torch
from autograder import race


def inputs(generator, device):
    return {input}


def repeated(times, given):
    parts = [given[{step} * i % {parts}] for i in range(times)]
    results = [{unit} for part in parts]
    return results[0]


def given_version(given):
    return repeated({times}, given)
"""
ANSWER = f"""
def answer(given):
    return repeated({ANSWERED}, given)
"""
TEST = f"race(answer, against=given_version, on=inputs, at_least={{'cpu': {ASKED}}}, points=1)"


# What people use today. Each takes two callables (given, answer), the inputs, and the stored time of the
# given side on a quiet machine; and gives log(given / answer).


def one_timing(given: Callable, answer: Callable, inputs: Callable, stored: float) -> float:
    (values,) = fresh_inputs(inputs, 1, "cpu")
    answer(values)
    start = time.perf_counter()
    answer(values)
    return math.log(stored / (time.perf_counter() - start))


def best_of_five(given: Callable, answer: Callable, inputs: Callable, stored: float) -> float:
    (values,) = fresh_inputs(inputs, 1, "cpu")
    number = max(1, math.ceil(5e-3 / stored))
    times = [min(timeit.repeat(partial(f, values), number=number, repeat=5)) for f in (given, answer)]
    return math.log(times[0] / times[1])


def blocked_autorange(given: Callable, answer: Callable, inputs: Callable, stored: float) -> float:
    (values,) = fresh_inputs(inputs, 1, "cpu")
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


def our_cell(box: Sandbox, work: str, given: int, verdicts: int, drawn: int) -> dict:
    """Real verdicts of one cell, each of a submission of its own; and verdicts drawn from their launches."""
    source = NOTEBOOK.format(input=WORKS[work][0], unit=WORKS[work][1], times=given, step=STEP, parts=PARTS)
    roles = [("given", source), ("student", ANSWER), ("test", TEST)]
    cells = [
        {"index": i, "role": role, "source": source, "grade_id": f"c{i}", "exercise": f"c{i}"}
        for i, (role, source) in enumerate(roles)
    ]
    words, took, ratios = [], [], []
    for _ in range(verdicts):
        done = box.run(cells, assignment="bench", cell_seconds=600)
        card = next(output["data"][MIME] for output in done.outputs[2] if MIME in output.get("data", {}))
        words.append({"passed": "faster", "failed": "slower"}.get(card["outcome"], "undecided"))
        took.append(done.seconds["races"])
        ratios.append([math.exp(log) / ASKED for log in card["laps"][0]["logs"]])
    pool = [ratio for launches in ratios for ratio in launches]
    source_of_chance = random.Random(0)
    more = [
        decide(
            (source_of_chance.choice(pool) for _ in range(MOST_LAUNCHES)),
            ERRORS["now"],
            strays_are_rare=box.strays.are_rare,
        ).word
        for _ in range(drawn)
    ]
    row = row_of(words, took, given, len(pool))
    wrong: Word = "slower" if given > ASKED * ANSWERED else "faster"
    row |= {
        "drawn": drawn,
        "drawn_wrong": more.count(wrong),
        "drawn_undecided": more.count("undecided"),
        # what single submissions measured, over the true ratio
        "measured": [round(median(launches) / row["ratio"], 3) for launches in ratios],
    }
    return row


def callables(work: str, given: int) -> tuple[Callable, Callable, Callable]:
    """The given version, the answer and the inputs of a cell, for the other judges: as fast as given is
    asked for.
    """
    names: dict[str, Callable] = {}
    source = NOTEBOOK.format(input=WORKS[work][0], unit=WORKS[work][1], times=given, step=STEP, parts=PARTS)
    exec(source.replace("from autograder import race", ""), names)
    repeated = names["repeated"]
    return names["given_version"], lambda values: repeated(ASKED * ANSWERED, values), names["inputs"]


def other_cell(judge: Callable, work: str, given: int, stored: float, verdicts: int) -> dict:
    """Real verdicts of one of the other judges."""
    results = [in_fresh_process(judge, *callables(work, given), stored) for _ in range(verdicts)]
    words = ["faster" if log >= 0 else "slower" for log, _ in results]
    return row_of(words, [seconds for _, seconds in results], given, 0)


def row_of(words: list[str], took: list[float], given: int, launches: int) -> dict:
    """Counts and times of a cell."""
    wrong = {True: "slower", False: "faster"}[given > ASKED * ANSWERED]
    return {
        "ratio": given / (ASKED * ANSWERED),
        "verdicts": len(words),
        "wrong": words.count(wrong),
        "undecided": words.count("undecided"),
        "launches": launches,
        "median_s": round(median(took), 4),
        "p95_s": round(sorted(took)[int(0.95 * (len(took) - 1))], 4),
    }


def measure(loads: list[str], each: dict[int, int], drawn: int, others: int, givens: tuple[int, ...]) -> dict:
    """The whole table; ``each`` real verdicts of ours a cell, ``others`` of each other judge."""
    linux.make_safe_to_fork()
    stored = {
        (work, given): in_fresh_process(quiet_time, *callables(work, given)[::2])[0]
        for work in WORKS
        for given in givens
    }
    rows = []
    cells = [(kind, work, given) for kind in loads for work in WORKS for given in givens]
    with Sandbox() as box:
        for kind, work, given in tqdm(cells, unit="cell", desc="judging the judges"):
            distance = round(100 * abs(given / (ASKED * ANSWERED) - 1))
            about = {"work": work, "load": kind}
            with load(kind):
                rows.append({"judge": OURS} | about | our_cell(box, work, given, each[distance], drawn))
                for judge, function in OTHERS.items():
                    found = other_cell(function, work, given, stored[work, given], others)
                    rows.append({"judge": judge} | about | found)
        machine = provenance("cpu") | {"noise": box.noise}
    return {"machine": machine, "date": date.today().isoformat(), "rows": rows}


def quiet_time(function: Callable, inputs: Callable) -> float:
    """Wall seconds of one call, as somebody would store them: the median of 15 after a warm-up."""
    (values,) = fresh_inputs(inputs, 1, "cpu")
    return median(timeit.repeat(lambda: function(values), number=1, repeat=16)[1:])


def summary(table: dict) -> str:
    """Wrong and undecided verdicts by judge, load and distance from the threshold, all works together."""
    lines = [
        f"{'judge':34}{'load':7}{'distance':>9}{'verdicts':>10}{'wrong':>9}{'undecided':>11}{'median s':>10}"
    ]
    for judge in (OURS, *OTHERS):
        for kind in dict.fromkeys(row["load"] for row in table["rows"]):
            for distance, ratios in (("20 %", (0.8, 1.25)), ("10 %", (0.9, 1.1))):
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
                    if (row["judge"], row["load"], row["ratio"]) == (judge, kind, given / (ASKED * ANSWERED))
                ]
                if cells:
                    points.append(
                        (
                            given / (ASKED * ANSWERED),
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
        table = measure(["quiet"], dict.fromkeys(EACH, 1), drawn=200, others=1, givens=(16, 25))
    else:
        table = measure(["quiet", "busy"], EACH, drawn=2000, others=2, givens=GIVEN)
    options.output.write_text(json.dumps(table, indent=1).replace("\n   ", " ").replace("\n  }", " }") + "\n")
    draw(table, options.chart)
    print(summary(table))
    print(f"Written to {options.output} and {options.chart}.")


if __name__ == "__main__":
    main()
