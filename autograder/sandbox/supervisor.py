"""The grader's side: start the fork server inside bubblewrap, hand it submissions, take what comes back."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from threading import Lock
from typing import Any, Literal

import msgspec

from ..judging.outcome import MIME
from ..measuring import store
from ..measuring.decide import Strays
from ..roles import unusual_words
from . import bubblewrap
from .channel import Channel, Gone, Malformed, TooLate, over_file
from .machine_lock import MachineLock
from .messages import (
    CellDone,
    CheckMachine,
    Finished,
    Go,
    Load,
    MachineChecked,
    Over,
    PlannedCell,
    Ready,
    RunNotebook,
    TimingDone,
    WantTiming,
    parse,
)
from .plan import imported_modules

ANSWER_SECONDS = 120.0
GRACE_SECONDS = 60.0
MOST_RESTARTS = 10

NO_SANDBOX = (
    "bubblewrap was not found, so submissions run without a sandbox: with limits on time and memory, but "
    "with this account's files and network in reach. On Debian and Ubuntu: apt install bubblewrap."
)
BROKEN_SANDBOX = "bubblewrap is there, but it cannot start a sandbox on this machine: {}"
NO_NAMESPACES = (
    "this machine does not allow namespaces inside the sandbox, so the sandbox is started anew for each "
    "submission, which takes some seconds."
)

Races = Literal["now", "later", "again"]


class SandboxError(Exception):
    """Submissions cannot be run here; one sentence for the instructor."""


@dataclass
class Executed:
    """What running a notebook gave.

    ``outputs`` has nbformat outputs by the index of their cell. ``waiting`` are the cells whose race is still
    to be timed, ``undecided`` those whose race noise left open. ``events`` are suspicious things, each with
    the ``cell`` it happened in (its grade_id, or None) and ``what`` it was. ``seconds`` were spent on
    "cells", "tests", "races" and in "total".
    """

    outputs: dict[int, list[dict]] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)
    undecided: list[int] = field(default_factory=list)
    events: list[dict] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    noise: dict | None = None
    sandboxed: bool = False
    sources: dict[int, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Executed:
        return cls(**data)

    def merged(self, later: Executed) -> Executed:
        """This pass with the tests that a later pass ran."""
        ran = [cell for cell in self.waiting + self.undecided if cell in later.outputs]
        return Executed(
            self.outputs | {cell: later.outputs[cell] for cell in ran},
            [cell for cell in self.waiting if cell not in ran],
            [cell for cell in self.undecided if cell not in ran] + later.undecided,
            self.events + [event for event in later.events if event not in self.events],
            {name: self.seconds.get(name, 0) + later.seconds.get(name, 0) for name in later.seconds},
            later.noise or self.noise,
            self.sandboxed and later.sandboxed,
            self.sources,
        )


class Sandbox:
    """A fork server that runs one notebook after another, each in fresh processes of its own.

    ``require``: raise SandboxError where there is no bubblewrap; otherwise ``warning`` says what is missing.
    ``strays`` watches the launches of all races.
    """

    def __init__(self, *, require: bool = False) -> None:
        if not sys.platform.startswith("linux"):
            raise SandboxError("grading needs Linux: processes are watched and timed through /proc.")
        self.warning: str | None = None
        self.noise: dict[str, Any] | None = None
        self._noisy: str | None = None
        self.strays = Strays()
        self._bubblewrap = shutil.which("bwrap")
        if not self._bubblewrap:
            self.warning = NO_SANDBOX
        elif reason := bubblewrap.why_it_fails(self._bubblewrap):
            self._bubblewrap, self.warning = None, BROKEN_SANDBOX.format(reason)
        if require and self.warning:
            raise SandboxError(self.warning)
        self._machine = MachineLock()
        self._busy = Lock()  # one notebook at a time, however many threads a worker has
        self._stopped = self._ready = self._namespaces = False
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Channel | None = None
        self._temporary: str | None = None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self,
        cells: list[dict[str, Any]],
        *,
        assignment: str,
        races: Races = "now",
        only: list[int] | None = None,
        cell_seconds: float = 60,
        notebook_seconds: float = 600,
        most_restarts: int = MOST_RESTARTS,
    ) -> Executed:
        """Run a notebook's cells, as ``plan`` gives them; ``only`` these tests, if given.

        With ``races="later"`` right answers are not timed, but put on the list ``waiting``; "again" is for
        races that noise left undecided before. Raises SandboxError where no process can be started.
        """
        planned = msgspec.convert(cells, list[PlannedCell])
        work = RunNotebook(planned, only, races, assignment, cell_seconds, notebook_seconds, most_restarts)
        with self._busy:
            return self._run(work)

    def _run(self, work: RunNotebook) -> Executed:
        start = time.monotonic()
        executed = Executed(
            sandboxed=bool(self._bubblewrap), sources={cell.index: cell.source for cell in work.cells}
        )
        executed.events += [
            {"cell": cell.grade_id, "what": f"The code mentions `{word}`."}
            for cell in work.cells
            if cell.role == "student"
            for word in unusual_words(cell.source)
        ]
        self._machine.share()
        finished = False
        try:
            control = self._start(work.cells)
            racing = work.races != "later" and any("race(" in cell.source for cell in work.cells)
            if racing and self.noise is None:
                self._check_machine(control)
            finished = self._follow(control, work, executed)
        except (Gone, TooLate, Malformed):
            self.close()
        finally:
            self._machine.release()
        if not finished:
            self.close()
            executed.events.append(
                {"cell": None, "what": "The judging process ended before its work was done."}
            )
        executed.seconds["total"] = time.monotonic() - start
        executed.noise = self.noise if executed.seconds.get("races") else None
        if not self._namespaces:
            self.close()
        return executed

    def _follow(self, control: Channel, work: RunNotebook, executed: Executed) -> bool:
        """Have the judge work, and take what it says; whether it came to its end."""
        names = {cell.index: cell.grade_id for cell in work.cells}
        control.send(work, seconds=ANSWER_SECONDS)
        deadline = time.monotonic() + work.notebook_seconds + GRACE_SECONDS
        finished = False
        kinds = CellDone | WantTiming | TimingDone | Finished | Over
        while True:
            frame = control.receive(max(1.0, deadline - time.monotonic()))
            said = parse(frame, kinds)
            match said:
                case CellDone():
                    _take(executed, said, names[said.index])
                case WantTiming() | TimingDone():
                    before = time.monotonic()
                    if isinstance(said, WantTiming):
                        self._machine.take()
                    else:
                        self._machine.release()
                        self._machine.share()
                        self.strays.add(said.logs)
                    deadline += time.monotonic() - before
                    control.send(Go(self._noisy, self.strays.are_rare), seconds=ANSWER_SECONDS)
                case Finished():
                    finished, executed.seconds = True, dict(said.seconds)
                case _:
                    return finished

    def _check_machine(self, control: Channel) -> None:
        """Let the machine measure itself, before it judges for the first time."""
        self._machine.take()
        try:
            control.send(CheckMachine(), seconds=ANSWER_SECONDS)
            checked = parse(control.receive(ANSWER_SECONDS), MachineChecked)
            control.receive(ANSWER_SECONDS)  # that it is over
        finally:
            self._machine.release()
            self._machine.share()
        store.write(checked.limits_name, checked.limits)
        self.strays.add(checked.logs, true=0.0)
        self.noise, self._noisy = checked.noise or {"noisy": checked.noisy}, checked.noisy

    def begin(self) -> None:
        """Start the fork server, and do not wait until it is ready: it loads torch first."""
        mine, other = socket.socketpair()
        command = [sys.executable, "-m", "autograder.sandbox.forkserver"]
        environment: dict[str, str] = {}
        if self._bubblewrap:
            command = [*bubblewrap.command(self._bubblewrap), *command]
        else:
            self._temporary = tempfile.mkdtemp(prefix="grading-")
            data, cache = bubblewrap.data_folder(), os.environ.get("XDG_CACHE_HOME", "")
            environment = bubblewrap.environment([self._temporary], str(data or ""), cache, namespaces=False)
        with other:
            self._process = subprocess.Popen(
                command,
                stdin=other.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment,
                cwd=self._temporary,
            )
        self._control, self._ready = over_file(mine.detach()), False

    def _start(self, cells: list[PlannedCell]) -> Channel:
        """Have a fork server that is ready; a new one loads what the given cells import."""
        if self._stopped:
            raise SandboxError("the sandbox was stopped.")
        if self._process is None or self._process.poll() is not None:
            self.close()
            self.begin()
        assert self._control and self._process
        if not self._ready:
            try:
                sources = [cell.source for cell in cells if cell.role != "student"]
                given = [cell.source for cell in cells if cell.role == "given"]
                meta = any("meta" in source for source in sources)
                load = Load(imported_modules(sources), given, meta)
                self._control.send(load, seconds=ANSWER_SECONDS)
                ready = parse(self._control.receive(ANSWER_SECONDS), Ready)
            except (Gone, TooLate, Malformed):
                self._process.kill()
                said = (self._process.communicate()[1] or b"").decode(errors="replace").strip().splitlines()
                why = said[-1] if said else "no reason given"
                raise SandboxError(f"the process that runs submissions could not be started: {why}") from None
            self._ready, self._namespaces = True, ready.namespaces
            if self._bubblewrap and not self._namespaces:
                self.warning = NO_NAMESPACES
        return self._control

    def stop(self) -> None:
        """From another thread: end what runs, and start nothing any more."""
        self._stopped = True
        if process := self._process:
            process.kill()

    def close(self) -> None:
        """End the fork server and everything that came from it."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            if self._ready:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(2)
            self._process.kill()
            self._process.wait()
            if self._process.stderr:
                self._process.stderr.close()
            self._process = None
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None


def _take(executed: Executed, done: CellDone, name: str | None) -> None:
    """What one cell showed."""
    if done.later:
        executed.waiting.append(done.index)
        return
    executed.outputs[done.index] = done.outputs
    executed.events += [{"cell": name, "what": what} for what in done.events]
    for output in done.outputs:
        card = output.get("data", {}).get(MIME, {})
        if card.get("outcome") == "undecided" and done.index not in executed.undecided:
            executed.undecided.append(done.index)
