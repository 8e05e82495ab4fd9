"""The pool of this machine: submissions run in parallel, errors are told."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from autograder.class_grading.pool import LocalPool, PoolError
from autograder.sandbox import Executed, SandboxError


class Watched:
    """Stands for a Sandbox: notes which jobs it runs, and does with them what the test says."""

    def __init__(self, act: Callable[[str], None] = lambda job: None, warning: str | None = None) -> None:
        self.act, self.warning, self.ran = act, warning, list[str]()
        self.notice: str | None = None
        self.stopped = threading.Event()

    def run(self, cells: list[dict], *, name: str) -> Executed:
        self.ran.append(name)
        self.act(name)
        return Executed(sandboxed=True)

    def stop(self) -> None:
        self.stopped.set()


@contextmanager
def pool(*sandboxes: Watched) -> Iterator[LocalPool]:
    made = LocalPool(sandboxes)
    try:
        yield made
    finally:
        made.close()


def start(made: LocalPool, *names: str) -> None:
    for name in names:
        made.start(name, [], name=name)


def test_submissions_run_in_parallel() -> None:
    together = threading.Barrier(3)
    with pool(*(Watched(lambda name: together.wait(60) and None) for _ in "abc")) as made:
        assert made.workers == 3
        start(made, *map(str, range(30)))
        done = [made.wait() for _ in range(30)]
    assert all(isinstance(result, Executed) for _, result in done)
    assert {job for job, _ in done} == set(map(str, range(30)))


def test_an_error_costs_only_its_job() -> None:
    def act(name: str) -> None:
        if name == "bad":
            raise SandboxError("there is no memory.\nNone at all.")

    with pool(Watched(act)) as made:
        start(made, "bad", "good")
        assert made.wait() == ("bad", "It could not be run: SandboxError: there is no memory.")
        assert made.wait() == ("good", Executed(sandboxed=True))


def test_closing_stops_what_runs() -> None:
    before = threading.active_count()
    begun = threading.Event()
    sandbox = Watched()
    sandbox.act = lambda name: begun.set() or (sandbox.stopped.wait(60) and None)
    with pool(sandbox) as made:
        start(made, "endless", "never begun")
        assert begun.wait(60)
    assert sandbox.ran == ["endless"]
    assert threading.active_count() == before


def test_what_a_sandbox_lacks_is_a_warning_or_an_error() -> None:
    lacking = Watched(warning="bubblewrap was not found")
    with pool(lacking, Watched(), lacking) as made:
        assert made.warnings == ["bubblewrap was not found"]
    unbounded = Watched()
    unbounded.notice = "there is no control group"
    with contextlib.closing(LocalPool([unbounded], require=True)) as made:
        assert made.warnings == ["there is no control group"]
    with pytest.raises(PoolError, match="This machine cannot run submissions: bubblewrap was not found"):
        LocalPool([lacking], require=True)
