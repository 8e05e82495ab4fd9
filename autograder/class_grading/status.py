"""What of a run is done, being done and left, and how long the rest will take.

The time left follows from work, in core-seconds: what each test has cost so far is expected of all who still
have it to come, but for its first ones, which cost more: then caches are cold, and the judge knows little of
the machine. To count submissions would mislead: those that cannot be read are done at once.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean
from threading import Event, Lock, Thread
from time import monotonic

from tqdm import tqdm

from ..sandbox import PlannedCell, Step
from .pool import Pool

LOOK_SECONDS, LOG_SECONDS = 0.5, 10.0
SHOWN = 3  # of those that are worked on
FIRST = 2  # of each test, which say little of the others
FIRST_PART = 0.03  # of the work, before which nothing is said about the rest


@dataclass
class _Run:
    """One notebook: whose it is, the names of its cells, which of them are tests, and which are left."""

    student: str
    names: dict[int, str]
    tests: set[int]
    left: set[int]
    doing: str | None = None


class Status:
    """Told by the engine and, from other threads, by its pool; ``trouble`` is what the engine waits for."""

    def __init__(self, submissions: int) -> None:
        self.submissions, self.graded = submissions, 0
        self.trouble: str | None = None
        self._lock = Lock()
        self._runs: dict[Hashable, _Run] = {}
        self._cells: Counter[str] = Counter()  # of all that were opened
        self._costs: defaultdict[str, list[float]] = defaultdict(list)
        self._since: float | None = None

    def opened(self, run: Hashable, student: str, cells: list[PlannedCell]) -> None:
        """A notebook of a student's was read, and these cells of it are to be run, perhaps once more."""
        names = {cell.index: cell.grade_id or "" for cell in cells}
        tests = {cell.index for cell in cells if cell.role == "test"}
        with self._lock:
            self._runs[run] = _Run(student, names, tests, set(names))
            self._cells.update(names.values())

    def tell(self, run: Hashable, step: Step) -> None:
        """What is done for it now."""
        with self._lock:
            self._since = self._since or monotonic()
            known = self._runs[run]
            if step.doing == "starting":  # perhaps once more, as a worker died
                known.left = set(known.names)
            known.doing = step.doing
            if step.cell in known.names:
                known.left.discard(step.cell)
                self._costs[known.names[step.cell]].append(step.work)

    def ran(self, run: Hashable) -> None:
        """All of it has run."""
        with self._lock:
            self._runs[run].left, self._runs[run].doing = set(), None

    @property
    def share(self) -> float:
        """Of the work, the share that is done."""
        done, rest = self._done_and_rest()
        return done / (done + rest) if done else self.graded / self.submissions

    @property
    def seconds_left(self) -> float | None:
        """How long the rest will take at the speed so far; None where too little is known."""
        done, rest = self._done_and_rest()
        if self._since is None or not done or done < FIRST_PART * (done + rest):
            return None
        return rest * (monotonic() - self._since) / done

    def _done_and_rest(self) -> tuple[float, float]:
        """The work that is done, and what is left: what each cell has cost so far, for all to be run."""
        with self._lock:
            costs = {name: fmean(found[FIRST:] or found) for name, found in self._costs.items()}
            other = fmean(costs.values()) if costs else 0.0
            read = len({run.student for run in self._runs.values()})
            unread = (self.submissions - read) / max(1, read)
            rest = unread * sum(number * costs.get(name, other) for name, number in self._cells.items())
            for run in self._runs.values():
                rest += sum(costs.get(run.names[index], other) for index in run.left)
            return sum(map(sum, self._costs.values())), rest

    def words(self, trouble: str | None = None) -> str:
        """All of it in a line; ``trouble`` is what its pool waits for."""
        found = f"{self.graded} of {self.submissions} submissions"
        if (seconds := self.seconds_left) is not None:
            found += f", about {length(seconds)} left"
        if trouble := self.trouble or trouble:
            return f"{found}; {trouble}"
        with self._lock:
            now = [run for run in self._runs.values() if run.doing]
            for run in now[:SHOWN]:
                ran = len(run.tests - run.left)
                found += f"; {run.student} {ran} of {len(run.tests)} tests, {run.doing}"
        return found + (f"; {len(now) - SHOWN} more" if len(now) > SHOWN else "")


@contextmanager
def shown(status: Status, pool: Pool) -> Iterator[None]:
    """While the block runs, a line about it: a bar in a terminal, a line every few seconds in a log."""
    in_terminal, over = sys.stderr.isatty(), Event()
    form = "grading: {bar:20} {elapsed}, {desc}"
    bar = tqdm(total=1.0, dynamic_ncols=True, bar_format=form, disable=not in_terminal)

    def show() -> None:
        words = status.words(pool.trouble)
        if in_terminal:
            bar.n = min(1.0, status.share)
            bar.set_description_str(words)
        else:
            print(f"grading: {words}", file=sys.stderr, flush=True)

    def watch() -> None:
        while not over.wait(LOOK_SECONDS if in_terminal else LOG_SECONDS):
            show()

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        show()
        bar.close()


def length(seconds: float) -> str:
    """A length of time as people say it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, hours = seconds / 60, seconds / 3600
    if minutes < 10:
        return f"{minutes:.1f} min"
    return f"{minutes:.0f} min" if minutes < 100 else f"{hours:.1f} h"
