"""The judge for code of one's own: no walls, any system, and each side measures itself.

The unit of evidence is the launch, as in the sandbox: two fresh processes whose blocks of calls take turns,
and one ratio. Nothing is assumed about strays, so it takes eleven launches of equal sign.
"""

import math
import os
import pickle
import random
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from statistics import median
from typing import Any

from ..judging.calls import AnswerError
from ..judging.values import change_of_inputs, difference
from ..measuring import duel
from ..measuring.clocks import calibrate, default_clock, run_block, threads
from ..measuring.decide import decide
from .function_files import Source, SourceError, Task, check_inputs, load, with_device
from .verdict import ERROR, Verdict

PAIRS = 5  # of a launch, after one that warms up
MOST_LAUNCHES = 60
START_SECONDS = 180.0  # more, for a process to load torch on a busy machine
HERE = "from autograder.judge.trusted import serve; serve()"


def judge_trusted(task: Task, verdict: Verdict) -> Verdict:
    """Fill in the verdict (see ``api.judge``). Raises SourceError and AnswerError."""
    taken: list[tuple[float, float]] = []  # seconds per call of both sides, for each pair of blocks

    def ratios() -> Iterator[float]:
        left = task.seconds
        for number in range(1, MOST_LAUNCHES + 1):
            task.tell(f"launch {number}")
            with ExitStack() as stack:
                slow, fast = (
                    stack.enter_context(closing(_Side(function, task, verdict.device)))
                    for function in (task.given, task.answer)
                )
                if number == 1:
                    check_inputs(partial(slow.do, "inputs"), partial(fast.do, "inputs"))
                _compare(slow, fast, task.tolerance)  # both have started now
                start = time.monotonic()
                pairs = _pairs(slow, fast)
                left -= time.monotonic() - start
            taken.extend(pairs)
            yield math.exp(median(math.log(one / other) for one, other in pairs)) / verdict.at_least
            if left < 0:
                return

    decision = decide(ratios(), ERROR)
    logs = [math.log(ratio * verdict.at_least) for ratio in decision.ratios]
    slow, fast = map(list, zip(*taken, strict=True))
    seconds, clock = {"slow": slow, "fast": fast}, default_clock(verdict.device)
    ratio = duel.ratio_of_logs(logs)
    return verdict.timed(duel.Verdict(decision.word, ratio, verdict.at_least, seconds, clock, logs))


def _compare(slow: "_Side", fast: "_Side", tolerance: float | None) -> None:
    """One call of each on equal inputs. Raises AnswerError where the answer's is another."""
    seed = secrets.randbits(62)
    (expected, theirs), (got, mine) = slow.do("call", seed), fast.do("call", seed)
    if found := difference(got, expected, None, tolerance):
        raise AnswerError("failed", f"the answer is wrong: {found}")
    before = partial(slow.do, "inputs", seed)
    if found := change_of_inputs(mine, theirs, before, lambda *inputs: None, tolerance):
        raise AnswerError("failed", f"the call changed its input: {found}")


def _pairs(slow: "_Side", fast: "_Side") -> list[tuple[float, float]]:
    """Seconds per call of both, for each pair of blocks."""
    calls = {side: side.do("calls", secrets.randbits(62)) for side in (slow, fast)}
    pairs = []
    for _ in range(1 + PAIRS):
        seed, order = secrets.randbits(62), random.SystemRandom().sample((slow, fast), 2)
        took = {side: side.do("block", seed, calls[side]) for side in order}
        pairs.append((took[slow], took[fast]))
    return pairs[1:]


class _Side:
    """A process for one launch, which starts."""

    def __init__(self, function: Source, task: Task, device: str) -> None:
        self._work = function, task.inputs, device
        self._usual, self._limit = task.seconds, task.seconds + START_SECONDS
        self._judged = function is task.answer
        folders = [folder or os.getcwd() for folder in sys.path]
        folders += [str(source.path.parent) for source in self._work[:2]]
        self._process = subprocess.Popen(
            [sys.executable, "-c", HERE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)},
        )

    def close(self) -> None:
        self._process.kill()
        with suppress(OSError):
            self._process.communicate()

    def do(self, what: str, seed: int, calls: int = 1) -> Any:
        """What ``_do`` gives. Raises AnswerError where the answer raises, and SourceError otherwise."""
        requests, replies = self._process.stdin, self._process.stdout
        assert requests and replies
        timer = threading.Timer(self._limit, self._process.kill)
        timer.start()
        try:
            requests.write(pickle.dumps((*self._work, what, seed, calls)))
            requests.flush()
            word, value = pickle.load(replies)
        except (EOFError, OSError):
            late = f"did not return within {self._limit:g} s."
            why = "ended its process." if timer.is_alive() else late
            raise SourceError(f"{self._work[0]} {why}") from None
        except Exception as error:
            raise SourceError(f"a result of {self._work[0]} cannot be read: {error}.") from None
        finally:
            timer.cancel()
        self._limit = self._usual
        if word == "raised" and self._judged:
            raise AnswerError("error", f"the answer: {value}")
        if word != "done":
            raise SourceError(f"{self._work[0]} raised {value}" if word == "raised" else value)
        return value


def serve() -> None:
    """The life of a side: pickled requests and replies, beside what its code reads and prints."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    with suppress(EOFError):
        while True:
            request = pickle.load(requests)
            try:
                reply = pickle.dumps(("done", _do(*request)))
            except SourceError as error:
                reply = pickle.dumps(("not run", str(error)))
            except Exception as error:
                reply = pickle.dumps(("raised", f"{type(error).__name__}: {error}"))
            replies.write(reply)
            replies.flush()


def _do(function: Source, inputs: Source, device: str, what: str, seed: int, calls: int) -> Any:
    """The "inputs" for a seed; the result of a "call" and its inputs after it; how many "calls" make a
    block; or seconds per call of a "block" of so many.
    """
    work, on = load(str(function.path), function.name), with_device(load(str(inputs.path), inputs.name))
    try:
        made = duel.fresh_inputs(on, seed, device)
    except Exception as error:
        raise SourceError(f"{inputs} raised {type(error).__name__}: {error}") from None
    with threads(1 if device == "cpu" else None):
        match what:
            case "inputs":
                return made
            case "call":
                return work(*made), made
            case "calls":
                return calibrate(work, made, device)
        return run_block(work, made, calls, device).per_call(default_clock(device))
