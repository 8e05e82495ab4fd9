"""The pool of this machine: submissions run in parallel, errors are told, and how far a run is."""

import random
import threading
from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace

import pytest

from autograder.class_grading import status
from autograder.class_grading.pool import LocalPool, PoolError
from autograder.class_grading.status import Status
from autograder.sandbox import Executed, PlannedCell, SandboxError, Step


class Watched:
    """Stands for a Sandbox: notes which jobs it runs, and does with them what the test says."""

    def __init__(self, act: Callable[[str], None] = lambda job: None, warning: str | None = None) -> None:
        self.act, self.warning, self.ran = act, warning, list[str]()
        self.notice = self.refusal = None
        self.stopped = threading.Event()

    def run(self, cells: list[PlannedCell], *, name: str) -> Executed:
        self.ran.append(name)
        self.act(name)
        return Executed(sandboxed=True)

    def stop(self) -> None:
        self.stopped.set()

    def close(self) -> None:
        assert self.stopped.is_set()


def start(made: LocalPool, *names: str) -> None:
    for name in names:
        made.start(name, [], name=name)


def test_submissions_run_in_parallel() -> None:
    together = threading.Barrier(3)
    with closing(LocalPool([Watched(lambda name: together.wait(60) and None) for _ in "abc"])) as made:
        assert made.workers == 3
        start(made, *map(str, range(30)))
        done = [made.wait() for _ in range(30)]
    assert all(isinstance(result, Executed) for _, result in done)
    assert {job for job, _ in done} == set(map(str, range(30)))


def test_an_error_costs_only_its_job() -> None:
    def act(name: str) -> None:
        if name == "bad":
            raise SandboxError("there is no memory.\nNone at all.")

    with closing(LocalPool([Watched(act)])) as made:
        start(made, "bad", "good")
        assert made.wait() == ("bad", "It could not be run: SandboxError: there is no memory.")
        assert made.wait() == ("good", Executed(sandboxed=True))


def test_closing_stops_what_runs() -> None:
    before = threading.active_count()
    begun = threading.Event()
    sandbox = Watched()
    sandbox.act = lambda name: begun.set() or (sandbox.stopped.wait(60) and None)
    with closing(LocalPool([sandbox])) as made:
        start(made, "endless", "never begun")
        assert begun.wait(60)
    assert sandbox.ran == ["endless"]
    assert threading.active_count() == before


def test_what_a_sandbox_lacks_is_a_warning_or_an_error() -> None:
    unconfined, lacking = Watched(warning="it runs without a sandbox"), Watched()
    lacking.notice = "there is no control group"
    with closing(LocalPool([unconfined, lacking, unconfined])) as made:
        assert made.warnings == ["it runs without a sandbox", "there is no control group"]
    lacking.refusal = "bubblewrap was not found"
    with pytest.raises(PoolError, match="This machine cannot run submissions: bubblewrap was not found"):
        LocalPool([Watched(), lacking])


def test_the_time_left_follows_from_what_is_left_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken notebooks cost nothing, and the last tests of the others the most."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(status, "monotonic", lambda: clock.now)
    costs = {f"test{i}": 0.1 + (i > 15) * 3.0 for i in range(20)}
    names = [("given", None), ("student", "answer"), *(("test", name) for name in costs)]
    cells = [PlannedCell(i, role, "", name, None) for i, (role, name) in enumerate(names)]
    found = Status(60)
    began = clock.now
    estimates = []
    for number, broken in enumerate(random.Random(1).sample([True] * 10 + [False] * 50, 60)):
        planned = [] if broken else cells
        found.opened(number, f"student{number}", planned)
        for cell in planned:
            cost = costs.get(cell.grade_id, 0.1)
            clock.now += cost / 2  # two cores, both at work on it
            found.tell(number, Step("running", cell.index, cost))
        found.graded += 1
        if planned:
            found.ran(number)
            estimates.append((clock.now, found.seconds_left))
    for now, left in estimates:
        if 0.1 <= (now - began) / (clock.now - began) <= 0.9:
            assert left is not None
            assert 1 / 1.5 < left / (clock.now - now) < 1.5, (now - began, left)
    assert found.seconds_left == 0
    assert found.share == 1
