"""The grader's side: start the fork server inside bubblewrap, hand it submissions, take what comes back."""

import atexit
import functools
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import IO, Any, Literal

from ...judging.outcome import MIME
from ...measuring import store
from ...measuring.countdown import CoreTime, Countdown
from ...measuring.decide import Strays
from ..racing.machine_lock import MachineLock
from ..walls import bubblewrap, linux, memory_cgroup, proof
from ..wire import messages
from ..wire.channel import Channel, Gone, Malformed, TooLate, pair
from .plan import to_load

# Cores for a submission whose answers are checked; and for a race: both sides on one, the judge on the other.
CHECKING, RACING = 1, 2
ANSWER_SECONDS = 120.0
GRACE_SECONDS = 60.0
MOST_RESTARTS = 10
# A machine that is too noisy to time races measures itself again, and all races together wait so long for it.
AGAIN_SECONDS, QUIET_SECONDS = 20.0, 600.0

Races = Literal["now", "again"]
# A wrong verdict of each kind has a probability of at most 1 in 1,000, and a race that noise left undecided
# is judged a second time: so the two share it. The first's share still decides after eleven equal signs.
ERRORS = {"now": 8.4e-4, "again": 1.6e-4}
Doing = Literal["starting", "running", "waiting for cores", "racing", "waiting for a quiet machine"]

log = logging.getLogger(__name__)


class SandboxError(Exception):
    """Submissions cannot be run here; one sentence for the instructor."""


@dataclass
class Executed:
    """What running a notebook gave.

    ``outputs`` has nbformat outputs by the index of their cell. ``undecided`` are the cells whose race noise
    left open. ``events`` are suspicious things, each with the ``cell`` it happened in (its grade_id, or None)
    and ``what`` it was. ``seconds`` were spent on "cells", "tests", "races" and in "total".
    """

    outputs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    undecided: list[int] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    noise: dict[str, Any] | None = None
    sandboxed: bool = False
    sources: dict[int, str] = field(default_factory=dict)

    def merged(self, later: "Executed") -> "Executed":
        """This pass with the tests that a later pass ran."""
        ran = [cell for cell in self.undecided if cell in later.outputs]
        return Executed(
            self.outputs | {cell: later.outputs[cell] for cell in ran},
            [cell for cell in self.undecided if cell not in ran] + later.undecided,
            self.events + [event for event in later.events if event not in self.events],
            {name: self.seconds.get(name, 0) + later.seconds.get(name, 0) for name in later.seconds},
            later.noise or self.noise,
            self.sandboxed and later.sandboxed,
            self.sources,
        )


@dataclass(frozen=True)
class Step:
    """What is done for a submission now; and its ``cell`` that has just ended, if any, after so much
    ``work``, in core-seconds, without what it waited.
    """

    doing: Doing
    cell: int | None = None
    work: float = 0.0


class Sandbox(AbstractContextManager["Sandbox"]):
    """A fork server that runs one notebook after another, each in fresh processes of its own.

    Where bubblewrap has not just shown that it holds, nothing runs: ``refusal`` says why, and what mends it.
    ``unconfined``: there it runs all the same, and ``warning`` says so; ``account`` is the number of the
    user, and of the group, that submissions then run as; only root can choose one.
    ``strays`` watches the launches of all races.
    ``notice`` says what this machine does not bound even so.
    """

    def __init__(self, *, unconfined: bool = False, account: int | None = None) -> None:
        why = proof.why_not()
        self.refusal = proof.LACKS["refused"].format(why) if why and not unconfined else None
        self.warning = proof.LACKS["unconfined"].format(why) if why and unconfined else None
        self.noise: dict[str, Any] | None = None
        self._noisy: str | None = None
        self.strays = Strays()
        self._bubblewrap = None if why else shutil.which("bwrap")
        self._account = None if self._bubblewrap else account
        self.notice: str | None = None
        if self._bubblewrap and not memory_cgroup.delegated():
            self.notice = proof.LACKS["no_cgroup"]
        self._machine = MachineLock()
        self._busy = Lock()  # one notebook at a time, however many threads a worker has
        self._stopped = Event()
        self._ready = self._namespaces = False
        self._nested = True  # until a machine shows that it allows no namespaces inside the sandbox
        self._may_wait = QUIET_SECONDS
        self._core_time = CoreTime(self._members)
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None  # what the processes wrote on stderr: a file, which is never full
        self._control: Channel | None = None
        self._to_close = ExitStack()  # what ``begin`` opened

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self,
        cells: list[messages.PlannedCell],
        *,
        assignment: str,
        races: Races = "now",
        only: list[int] | None = None,
        files: dict[str, bytes | None] | None = None,
        cell_seconds: float = 60,
        notebook_seconds: float = 600,
        most_restarts: int = MOST_RESTARTS,
        tell: Callable[[Step], None] = lambda step: None,
    ) -> Executed:
        """Run a notebook's cells, as ``plan`` gives them; ``only`` these tests, if given.

        Answers are checked on one core, and raced on two; ``races="again"`` is for races that noise left
        undecided before, and has the machine alone. ``files`` are put beside the student's cells, by their
        paths; of one that is None, the student is told that it was left out. ``tell`` hears what is done now.
        Raises SandboxError where no process can be started.
        """
        work = messages.RunNotebook(
            cells, only, ERRORS[races], assignment, files or {}, cell_seconds, notebook_seconds, most_restarts
        )
        with self._busy:
            return self._run(work, None if races == "again" else RACING, tell)

    def run_to_the_end(self, cells: list[messages.PlannedCell], **settings: Any) -> Executed:
        """As ``run``; races that noise left undecided are judged once more, with the machine alone."""
        executed = self.run(cells, **settings)
        if not executed.undecided:
            return executed
        return executed.merged(self.run(cells, races="again", only=executed.undecided, **settings))

    def _run(self, work: messages.RunNotebook, racing: int | None, tell: Callable[[Step], None]) -> Executed:
        start = time.monotonic()
        executed = Executed(
            sandboxed=bool(self._bubblewrap), sources={cell.index: cell.source for cell in work.cells}
        )
        tell(Step("waiting for cores"))
        self._machine.take(CHECKING)
        tell(Step("starting"))
        finished = False
        try:
            with suppress(Gone, TooLate, Malformed):
                control = self._start(work.cells)
                races = any("race(" in cell.source for cell in work.cells)
                if races and (self.noise is None or self._noisy):
                    self._check_until_quiet(control, tell)
                self._follow(control, work, racing, executed, tell)
                finished = bool(executed.seconds)  # which the judge says at its end
            if not finished:
                self.close()
                what = "The judging process ended before its work was done."
                executed.events.append({"cell": None, "what": what})
        finally:
            self._machine.release()
        executed.seconds["total"] = time.monotonic() - start
        if self.noise and executed.seconds.get("races"):
            strays = {"strays": round(self.strays.share, 3), "signs_only": not self.strays.are_rare}
            executed.noise = self.noise | strays
        if not self._namespaces:
            self.close()
        return executed

    def _follow(
        self,
        control: Channel,
        work: messages.RunNotebook,
        racing: int | None,
        executed: Executed,
        tell: Callable[[Step], None],
    ) -> None:
        """Have the judge work, with so many cores for ``racing``, and take what it says."""
        names = {cell.index: cell.grade_id for cell in work.cells}
        control.send(work, seconds=self._soon())
        countdown = Countdown(work.notebook_seconds + GRACE_SECONDS, self._core_time)
        tell(Step("running"))
        kinds = messages.CellDone | messages.WantCores | messages.Finished | messages.Over
        while True:
            match messages.parse(control.receive(countdown.left), kinds):
                case messages.CellDone() as done:
                    _take(executed, done, names[done.index])
                    tell(Step("running", done.index, done.work))
                case messages.WantCores() as wanted:
                    before = time.monotonic()
                    tell(Step("waiting for cores"))
                    self.strays.add(wanted.logs)
                    cores = self._machine.take(racing if wanted.race else CHECKING)
                    countdown.put_off(time.monotonic() - before)
                    tell(Step("racing" if wanted.race else "running"))
                    go = messages.Go(cores, self._noisy, self.strays.are_rare)
                    control.send(go, seconds=self._soon())
                case messages.Finished(seconds=seconds):
                    executed.seconds = dict(seconds)
                case _:
                    return

    def _soon(self) -> Callable[[], float]:
        """What is left of ``ANSWER_SECONDS``, which begin now; what waits for a busy machine has longer."""
        return Countdown(ANSWER_SECONDS, self._core_time).left

    def _members(self) -> list[int]:
        """The processes of this sandbox."""
        return linux.with_descendants(self._process.pid) if self._process else []

    def _check_until_quiet(self, control: Channel, tell: Callable[[Step], None]) -> None:
        """Let the machine measure itself, again and again until it is quiet enough to judge, or too late."""
        self._check_machine(control)
        while self._noisy and self._may_wait > 0 and not self._stopped.is_set():
            log.warning("Races wait: %s The next look is in %g s.", self._noisy, AGAIN_SECONDS)
            tell(Step("waiting for a quiet machine"))
            self._may_wait -= AGAIN_SECONDS
            self._machine.release()
            self._stopped.wait(AGAIN_SECONDS)
            self._check_machine(control)

    def _check_machine(self, control: Channel) -> None:
        """Let the machine measure itself."""
        cores = self._machine.take()
        try:
            control.send(messages.CheckMachine(cores), seconds=self._soon())
            checked = messages.parse(control.receive(self._soon()), messages.MachineChecked)
            control.receive(self._soon())  # that it is over
        finally:
            self._machine.take(CHECKING)
        store.write(checked.limits_name, checked.limits)
        self.strays.add(checked.logs, true=0.0)
        self.noise, self._noisy = checked.noise, checked.noise.get("noisy")

    def begin(self) -> None:
        """Start the fork server, and do not wait until it is ready: it loads torch first.

        Raises SandboxError where nothing may run.
        """
        if self.refusal:
            raise SandboxError(self.refusal)
        self._control, other = pair()
        python, environment = [sys.executable], dict[str, str]()
        group = temporary = None
        if self._bubblewrap:
            if parent := memory_cgroup.delegated():
                group = memory_cgroup.make(parent, f"answers-{os.getpid()}-{id(self)}")
                self._to_close.callback(_remove, group)
            python = bubblewrap.command(self._bubblewrap, group, nested=self._nested)
        else:
            temporary = tempfile.mkdtemp(prefix="grading-")
            # shutil's own way fails for a thousand folders in each other.
            self._to_close.callback(subprocess.run, ["/bin/rm", "-rf", temporary])
            if self._account is not None:
                os.chown(temporary, self._account, self._account)
            data, cache = bubblewrap.data_folder(), os.environ.get("XDG_CACHE_HOME", "")
            environment = bubblewrap.environment([temporary], str(data or ""), cache, namespaces=False)
        self._said = self._to_close.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (it is entered)
        with other:
            self._process = subprocess.Popen(
                [*python, "-m", "autograder.sandbox.submissions.fork_server"],
                stdin=other.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                env=environment,
                cwd=temporary,
                user=self._account,
                group=self._account,
                extra_groups=None if self._account is None else [],
            )
        self._to_close.callback(self._end, self._process)
        self._ready = False
        self._to_close.callback(self._control.close)

    def _start(self, cells: list[messages.PlannedCell]) -> Channel:
        """Have a fork server that is ready; a new one loads what the given cells import."""
        if self._stopped.is_set():
            raise SandboxError("the sandbox was stopped.")
        if self._process is None or self._process.poll() is not None:
            self.close()
            self.begin()
        assert self._control and self._process
        if not self._ready:
            try:
                self._control.send(to_load(cells), seconds=self._soon())
                ready = messages.parse(self._control.receive(self._soon()), messages.Ready)
            except (Gone, TooLate, Malformed):
                self._process.kill()
                self._process.wait()
                why = self._last_words()
                raise SandboxError(f"the process that runs submissions could not be started: {why}") from None
            self._ready, self._namespaces = True, ready.namespaces
            if self._bubblewrap and not self._namespaces:
                self.warning = proof.LACKS["no_namespaces"]
                if self._nested:
                    self._nested = False
                    self.close()
                    return self._start(cells)
            elif self._bubblewrap and not ready.filtered:
                self.warning = proof.LACKS["no_filter"]
        return self._control

    def _last_words(self) -> str:
        """The last line that the processes wrote on stderr."""
        assert self._said
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - messages.MOST_WORDS))
        said = self._said.read().decode(errors="replace").strip().splitlines()
        return said[-1] if said else "no reason given"

    def stop(self) -> None:
        """From another thread: end what runs, and start nothing any more."""
        self._stopped.set()
        self._kill()

    def _kill(self) -> None:
        """Kill its processes. While bubblewrap starts, its second process does not yet die with the first."""
        if process := self._process:
            process.send_signal(signal.SIGSTOP)  # so that it starts no more
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            for pid in self._members():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """End the fork server and everything that came from it."""
        self._to_close.close()
        self._control = self._process = None

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if self._ready:
            with suppress(subprocess.TimeoutExpired):
                process.wait(2)
        self._kill()
        process.wait()


@functools.cache
def shared_sandbox(unconfined: bool) -> Sandbox:
    """This process's sandbox, which takes seconds to start; it ends with the process."""
    box = Sandbox(unconfined=unconfined)
    atexit.register(box.close)
    return box


def _remove(group: Path) -> None:
    with suppress(OSError):
        group.rmdir()


def _take(executed: Executed, done: messages.CellDone, name: str | None) -> None:
    """What one cell showed."""
    executed.outputs[done.index] = done.outputs
    executed.events += [{"cell": name, "what": what} for what in done.events]
    for output in done.outputs:
        card = output.get("data", {}).get(MIME, {})
        if card.get("outcome") == "undecided" and done.index not in executed.undecided:
            executed.undecided.append(done.index)
