"""How often is a speed judge wrong? Measures the one that grades beside what people use; writes
data/judge.json, and every launch of every verdict to data/judge.jsonl.

True ratios are made by construction: the given version repeats a unit of work m times, the answer 16 times,
and 1.25 times as fast is asked for; so the true ratio over the one asked for is m / 20. And identical code on
both sides must come out equal, in every single grading. Our verdicts are races through the whole sandbox, as
in grading, each of a submission of its own; those of the other judges are real, too, each in a process of its
own. From our launches in a cell more verdicts are drawn with replacement.

    python benchmarks/judge.py               # three hours; leave the machine alone
    python benchmarks/judge.py --minutes 40  # so long; the next call goes on, if the judge is the same
    python benchmarks/judge.py --quick       # a small sample in a minute, for a look and for the tests
"""

from __future__ import annotations

import os

# Before torch loads: a process with thread pools cannot be forked.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import ast
import hashlib
import json
import math
import pickle
import random
import subprocess
import sys
import tempfile
import time
import timeit
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from statistics import median

from torch.utils.benchmark import Timer
from tqdm import tqdm

from autograder.judging.outcome import MIME
from autograder.measuring.decide import FAR, decide
from autograder.measuring.device import provenance
from autograder.measuring.duel import Side, fresh_inputs, interleave
from autograder.sandbox import PlannedCell, Sandbox
from autograder.sandbox.racing.launches import MOST_LAUNCHES
from autograder.sandbox.submissions.supervisor import ERRORS
from autograder.sandbox.walls import linux
from autograder.sandbox.wire.messages import Role

ROOT = Path(__file__).resolve().parents[1]
OURS = "the judge that grades"
ANSWERED, ASKED = 16, 1.25
GIVEN = (16, 18, 22, 25)
# Kind of load -> real verdicts of ours in each cell.
ROUNDS = {"quiet": 70, "busy": 70, "bursts": 10}
OTHER_ROUNDS = 5  # and of the others
SAME_ROUNDS, A_ROUND = 20, 4  # gradings of each kind of identical code, and how many of them a round
TRIES = 3  # at a grading of identical code that is put off, because nothing was measured then
DRAWN = 2000

# Kind of work -> its input, with a part for each unit; and a unit. All results stay until the end, and the
# parts are taken in an order that jumps: so the last unit finds its memory as cold as the first, and sixteen
# of them take sixteen times as long as one; but for up to 0.1 ms in which a call is handed over to a process
# whose caches hold its data and not that code.
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

# Kind of work -> its input, and the code that both sides have in common. 15 % are asked for.
SAME_ASKED = 1.15
SAME = {
    "temporaries": (
        "torch.rand(200_000, generator=generator)",
        "((given + 1) * (given - 1)).exp().mean()",
    ),
    "big results": ("torch.rand(2_000_000, generator=generator)", "given + 1"),
    "allocation": (
        "torch.rand(1, generator=generator)",
        "[torch.empty(1_000_000).fill_(1) for _ in range(4)]",
    ),
    "lists of tensors": (
        "[torch.rand(30, 40, generator=generator) for _ in range(200)]",
        "[one * 2 for one in given]",
    ),
    "convolution": (
        "torch.rand(4, 3, 64, 64, generator=generator)",
        "torch.nn.functional.conv2d(given, given[:, :, :3, :3])",
    ),
    "gather": (
        "torch.randint(100_000, (200_000,), generator=generator)",
        "torch.arange(100_000)[given].sum()",
    ),
    "bincount": ("torch.randint(1000, (100_000,), generator=generator)", "torch.bincount(given)"),
    "pure Python": ("torch.rand(200, generator=generator).tolist()", "sum(x * x for x in given * 10)"),
    "dictionary": (
        "torch.randint(1000, (3000,), generator=generator).tolist()",
        "sum({key: key for key in given}.values())",
    ),
    "small operations": (
        "torch.rand(64, generator=generator)",
        "[given.add(1) for _ in range(20)][-1]",
    ),
    "sorting": ("torch.rand(50_000, generator=generator)", "given.sort().values"),
    "gradients": (
        "torch.rand(256, 256, generator=generator)",
        "torch.autograd.grad((leaf := given.clone().requires_grad_()).tanh().sum(), leaf)[0]",
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
TEST = "race(answer, against=given_version, on=inputs, at_least={{'cpu': {asked}}}, points=1)"
SAME_NOTEBOOK = """
import torch
from autograder import race


def inputs(generator, device):
    return {input}


def given_version(given):
    return {code}
"""


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
    sides = {"given": Side(given, inputs), "answer": Side(answer, inputs)}
    samples = interleave(sides, clock="wall", seconds=0.15)
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


BUSY = """
import os, random, time
block = bytearray(4_000_000)
parent = os.getppid()
while os.getppid() == parent:  # it may be killed
    end = time.perf_counter() + random.uniform(0.005, 0.05)
    while time.perf_counter() < end:
        sum(range(2000)); block[:] = bytes(4_000_000)
    time.sleep(random.uniform(0, 0.01))
"""
BURSTS = """
import os, random, time
here, there = memoryview(bytearray(64_000_000)), memoryview(bytes(64_000_000))
parent = os.getppid()
while os.getppid() == parent:
    end = time.perf_counter() + random.uniform(0.05, 0.3)
    while time.perf_counter() < end:
        here[:] = there
    time.sleep(random.uniform(0.05, 0.3))
"""


@contextmanager
def load(kind: str) -> Iterator[None]:
    """Nothing for "quiet"; for "busy" two processes per core that compute, with pauses; for "bursts" one per
    core that takes all the memory bandwidth it can get, with pauses.
    """
    cores = len(os.sched_getaffinity(0))
    code, number = {"quiet": ("", 0), "busy": (BUSY, 2 * cores), "bursts": (BURSTS, cores)}[kind]
    noise = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(number)]
    try:
        time.sleep(0.1 if noise else 0)
        yield
    finally:
        for process in noise:
            process.kill()
            process.wait()


def grade(box: Sandbox, given: str, answer: str, asked: float) -> dict:
    """One real verdict, of a submission of its own: the word, the seconds, and the logs of the launches.

    Where the machine was too uneven to judge, the race is put off: "undecided", and there are no logs.
    """
    roles: list[tuple[Role, str]] = [
        ("given", given),
        ("student", answer),
        ("test", TEST.format(asked=asked)),
    ]
    cells = [PlannedCell(i, role, source, f"c{i}", f"c{i}") for i, (role, source) in enumerate(roles)]
    done = box.run(cells, assignment="bench", cell_seconds=600)
    card = next(output["data"][MIME] for output in done.outputs[2] if MIME in output.get("data", {}))
    if not card.get("laps"):
        if card["outcome"] != "undecided":
            raise RuntimeError(f"a race was not run: {card['message']}\n{given}")
        seconds = done.seconds["races"]
        return {"word": "undecided", "seconds": seconds, "logs": [], "signs_only": False, "thrown_away": 0}
    (lap,) = card["laps"]
    logs = [round(log, 4) for log in lap["logs"]]
    noticed = {"signs_only": lap["signs_only"], "thrown_away": lap["thrown_away"]}
    return {"word": lap["word"], "seconds": done.seconds["races"], "logs": logs} | noticed


def notebook(work: str, given: int) -> str:
    """The given cells of a race whose given version repeats its work so often."""
    return NOTEBOOK.format(input=WORKS[work][0], unit=WORKS[work][1], times=given, step=STEP, parts=PARTS)


def callables(work: str, given: int) -> tuple[Callable, Callable, Callable]:
    """The given version, the answer and the inputs of a cell, for the other judges: as fast as given is
    asked for.
    """
    names: dict[str, Callable] = {}
    exec(notebook(work, given).replace("from autograder import race", ""), names)
    repeated = names["repeated"]
    return names["given_version"], lambda values: repeated(int(ASKED * ANSWERED), values), names["inputs"]


def measure(log: Path, rounds: Mapping[str, int], same: int, givens: Sequence[int], until: float) -> bool:
    """Add verdicts to the log until each cell has as many as ``rounds`` says for its kind of load, and each
    kind of identical code ``same``; whether that was before ``until``.

    In every round, in random order: one of each cell, and gradings of each kind of identical code.
    """
    linux.make_safe_to_fork()
    records = read(log)
    stored = {tuple(one["stored"]): one["seconds"] for one in records if "stored" in one}
    there = {(one["round"], *one["cell"]) for one in records if one.get("judge") == OURS}
    plan = [
        (number, work, kind, given)
        for kind in rounds
        for number in range(rounds[kind])
        for work in WORKS
        for given in givens
    ]
    plan += [(number, kind, "same", 0) for number in range(same) for kind in SAME]
    random.Random(0).shuffle(plan)
    plan.sort(key=lambda one: one[0] // A_ROUND if one[2] == "same" else one[0])
    left = [one for one in plan if one not in there]
    with log.open("a") as file, Sandbox() as box:

        def keep(record: dict) -> None:
            file.write(json.dumps(record) + "\n")
            file.flush()

        keep({"machine": provenance("cpu")})  # also of a run that is stopped; its noise is known at the end
        for work in WORKS:
            for given in givens:
                if (work, given) not in stored:
                    seconds, _ = in_fresh_process(quiet_time, *callables(work, given)[::2])
                    stored[work, given] = seconds
                    keep({"stored": [work, given], "seconds": seconds})
        for number, work, kind, given in tqdm(left, unit="verdict", desc="judging the judges"):
            if time.monotonic() > until:
                break
            about = {"round": number, "cell": [work, kind, given]}
            if kind == "same":
                body, code = SAME_NOTEBOOK.format(input=SAME[work][0], code=SAME[work][1]), SAME[work][1]
                answer = f"def answer(given):\n    return {code}\n"
                for _ in range(TRIES):
                    graded = grade(box, body, answer, SAME_ASKED)
                    keep(about | {"judge": OURS} | graded)
                    if graded["logs"]:
                        break
                continue
            with load(kind):
                for judge, function in OTHERS.items() if number < OTHER_ROUNDS else ():
                    both = callables(work, given)
                    ratio, seconds = in_fresh_process(function, *both, stored[work, given])
                    word = "faster" if ratio >= 0 else "slower"
                    keep(about | {"judge": judge, "word": word, "seconds": seconds, "logs": []})
                keep(about | {"judge": OURS} | grade(box, notebook(work, given), ANSWER, ASKED))
        keep({"machine": provenance("cpu") | {"noise": box.noise}})
    return time.monotonic() <= until


def read(log: Path) -> list[dict]:
    """What a log holds so far."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def begun(log: Path) -> Path:
    """The log, which begins anew where it tells of another judge than this one."""
    if read(log)[:1] != [{"code": fingerprint()}]:
        log.write_text(json.dumps({"code": fingerprint()}) + "\n")
    return log


def fingerprint() -> str:
    """What changes with the code of the judge, and with this benchmark's; not with words about it."""
    folders = [ROOT / "autograder" / name for name in ("sandbox", "judging", "measuring")]
    found = hashlib.sha256()
    for path in [Path(__file__), *(path for folder in folders for path in sorted(folder.rglob("*.py")))]:
        found.update(ast.unparse(without_docstrings(ast.parse(path.read_text()))).encode())
    return found.hexdigest()[:12]


def without_docstrings(tree: ast.Module) -> ast.Module:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return tree


def table_of(records: list[dict], drawn: int) -> dict:
    """The published table: a row for each judge and cell, and one for each kind of identical code."""
    cells: defaultdict[tuple, list[dict]] = defaultdict(list)
    for one in records:
        if "cell" in one:
            cells[tuple([one["judge"], *one["cell"]])].append(one)
    rows, same = [], []
    order = [OURS, *OTHERS, *SAME, *WORKS, *ROUNDS, "same", *GIVEN, 0]
    rank = {name: number for number, name in enumerate(order)}
    for key in sorted(cells, key=lambda key: [rank[name] for name in key]):
        (judge, work, kind, given), found = key, cells[key]
        if kind == "same":
            gradings = sorted(math.exp(median(one["logs"])) for one in found if one["logs"])
            same.append(
                {
                    "work": work,
                    "gradings": len(gradings),
                    "put_off": len(found) - len(gradings),
                    "least": round(gradings[0], 3),
                    "median": round(median(gradings), 3),
                    "most": round(gradings[-1], 3),
                    "wrong": wrong([one["word"] for one in found], False),
                }
            )
        else:
            row = row_of([one["word"] for one in found], [one["seconds"] for one in found], given)
            if judge == OURS:
                launched = [one for one in found if one["logs"]]
                if not launched:
                    raise SystemExit(f"Every race of {work}, {kind}, was put off. Leave the machine alone.")
                row |= drawn_from([one["logs"] for one in launched], given, drawn) | seen(launched)
                row["put_off"] = len(found) - len(launched)
            rows.append({"judge": judge, "work": work, "load": kind} | row)
    machine = next(one["machine"] for one in reversed(records) if "machine" in one)
    processors = sorted({one["machine"]["name"] for one in records if "machine" in one})
    about = {"machine": machine, "processors": processors, "date": date.today().isoformat()}
    return about | {"rows": rows, "same": same}


def drawn_from(logs: list[list[float]], given: int, drawn: int) -> dict:
    """What single submissions measured, and verdicts that are drawn from the launches of all of them."""
    true = given / (ASKED * ANSWERED)
    pool = [math.exp(log) / ASKED for launches in logs for log in launches]
    source = random.Random(0)
    words = [
        decide((source.choice(pool) for _ in range(MOST_LAUNCHES)), ERRORS["now"], strays_are_rare=True).word
        for _ in range(drawn)
    ]
    measured = sorted(math.exp(median(launches)) / ASKED / true for launches in logs)
    return {
        "launches": len(pool),
        "drawn": drawn,
        "drawn_wrong": wrong(words, true > 1),
        "drawn_undecided": words.count("undecided"),
        # over the true ratio: the least, the median and the most of what single submissions measured
        "measured": [round(one, 3) for one in (measured[0], median(measured), measured[-1])],
    }


def seen(records: Sequence[dict]) -> dict:
    """The share of launches that strayed (from the median of their race), how many were thrown away, and in
    how many races only signs counted.
    """
    logs = [log - median(one["logs"]) for one in records for log in one["logs"]]
    return {
        "strays": round(sum(abs(log) > math.log(FAR) for log in logs) / len(logs), 4),
        "thrown_away": sum(one["thrown_away"] for one in records),
        "signs_only": sum(one["signs_only"] for one in records),
    }


def wrong(words: Sequence[str], passes: bool) -> int:
    """How many verdicts give points that they should not, or do not give those that they should."""
    return sum(words.count(word) for word in (("slower",) if passes else ("faster", "as fast")))


def row_of(words: list[str], took: list[float], given: int) -> dict:
    """Counts and times of a cell."""
    return {
        "ratio": given / (ASKED * ANSWERED),
        "verdicts": len(words),
        "wrong": wrong(words, given > ASKED * ANSWERED),
        "undecided": words.count("undecided"),
        "median_s": round(median(took), 4),
        "p95_s": round(sorted(took)[int(0.95 * (len(took) - 1))], 4),
    }


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
    for row in table["same"]:
        lines.append(
            f"identical code, {row['work']:18} {row['gradings']:3} gradings, from {row['least']:.3f} to "
            f"{row['most']:.3f}, median {row['median']:.3f}"
        )
    return "\n".join(lines)


def a_point(table: dict, judge: str) -> str:
    """How many verdicts of a judge are behind each point of the chart."""
    numbers: defaultdict[tuple[str, float], int] = defaultdict(int)
    for row in table["rows"]:
        if row["judge"] == judge:
            numbers[row["load"], row["ratio"]] += row["verdicts"]
    return " or ".join(map(str, sorted(set(numbers.values()), reverse=True)))


def draw(table: dict, path: Path) -> None:
    """The chart for the README: wrong verdicts by true ratio, quiet and busy."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    colours = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#D55E00")
    loads = list(dict.fromkeys(row["load"] for row in table["rows"]))
    figure = Figure(figsize=(10, 4.7), dpi=110, layout="constrained")
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
            panel.plot(
                *zip(*points, strict=True),
                color=colour,
                marker=marker,
                label=f"{judge} ({a_point(table, judge)} a point)",
                **weight,
            )
        title = {
            "quiet": "quiet machine",
            "busy": "two busy processes per core",
            "bursts": "bursts that fill the memory bus",
        }[kind]
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("true ratio / ratio asked for")
        panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        panel.grid(color="#DDDDDD")
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    panels[0].set_ylabel("wrong verdicts")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=9, frameon=False
    )
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, facecolor="white", metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small sample in a minute")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop then; the next call goes on")
    parser.add_argument("--output", type=Path, help="default: data/judge.json, or with --quick in build")
    parser.add_argument("--chart", type=Path, help="default: docs/judge.png, or with --quick in build")
    options = parser.parse_args()
    options.output = options.output or ROOT / ("build" if options.quick else "data") / "judge.json"
    options.chart = options.chart or ROOT / ("build" if options.quick else "docs") / "judge.png"
    options.output.parent.mkdir(exist_ok=True)
    until = time.monotonic() + 60 * options.minutes
    log = options.output.with_suffix(".jsonl")
    if options.quick:
        with tempfile.TemporaryDirectory() as folder:
            log = begun(Path(folder) / "judge.jsonl")
            measure(log, {"quiet": 1}, 1, (GIVEN[0], GIVEN[-1]), until)
            table = table_of(read(log), drawn=200)
    else:
        if not measure(begun(log), ROUNDS, SAME_ROUNDS, GIVEN, until):
            print(f"Not done yet; what was measured is in {log}, and the next call goes on.")
        table = table_of(read(log), DRAWN)
    options.output.write_text(json.dumps(table, indent=1).replace("\n   ", " ").replace("\n  }", " }") + "\n")
    draw(table, options.chart)
    print(summary(table))
    print(f"Written to {options.output} and {options.chart}.")


if __name__ == "__main__":
    main()
