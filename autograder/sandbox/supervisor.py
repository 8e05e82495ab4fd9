"""The grader's side: start a warm process inside bubblewrap, hand it submissions, take what comes back."""

from __future__ import annotations

import ast
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ..judging.outcome import MIME
from ..roles import exercise_of, is_test, nbgrader_data, solution_cells, unusual_words
from .answer_link import take
from .channel import Gone, Malformed, TooLate

if TYPE_CHECKING:
    from nbformat import NotebookNode

START_SECONDS = 120.0
GRACE_SECONDS = 60.0
MOST_RESTARTS = 10
HOST_PROC = "/host-proc"
PACKAGE = Path(__file__).resolve().parents[1]

NO_SANDBOX = (
    "bubblewrap was not found, so submissions run without a sandbox: with limits on time and memory, but "
    "with this account's files and network in reach. On Debian and Ubuntu: apt install bubblewrap."
)
BROKEN_SANDBOX = "bubblewrap is there, but it cannot start a sandbox on this machine: {}"
NO_ROOMS = (
    "this machine does not allow namespaces inside the sandbox, so the sandbox is started anew for each "
    "submission, which takes some seconds."
)


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

    def to_dict(self) -> dict:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict) -> Executed:
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


def plan(notebook: NotebookNode) -> list[dict]:
    """The code cells of a restored notebook as plain data, each with its role.

    "given" cells and "test" cells are the instructor's; whatever else there is counts as the student's.
    """
    exercises = solution_cells(notebook)
    cells = []
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        data = nbgrader_data(cell)
        role = "test" if is_test(cell) else "given" if data.get("locked") else "student"
        name = data.get("grade_id")
        exercise = (exercise_of(name, exercises) or name) if role == "test" else None
        cells.append(
            {"index": index, "role": role, "source": cell.source, "grade_id": name, "exercise": exercise}
        )
    return cells


def imported(cells: list[dict]) -> list[str]:
    """The modules that the instructor's cells import."""
    found = set()
    for cell in cells:
        with suppress(SyntaxError):  # IPython's own commands
            for node in ast.walk(ast.parse(cell["source"] if cell["role"] != "student" else "")):
                if isinstance(node, ast.Import):
                    found.update(alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module)
    return sorted(found)


class Turns:
    """Who may use this machine now: many that check, or one that times."""

    def __init__(self) -> None:
        folder = Path(tempfile.gettempdir())
        self._gate, self._room = (
            os.open(
                folder / f"autograder-{os.getuid()}-{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
            for name in ("gate", "room")
        )

    def together(self) -> None:
        """Wait while somebody times."""
        fcntl.flock(self._gate, fcntl.LOCK_SH)
        fcntl.flock(self._room, fcntl.LOCK_SH)
        fcntl.flock(self._gate, fcntl.LOCK_UN)

    def alone(self) -> None:
        """Wait until nobody else works, and keep others from starting."""
        fcntl.flock(self._room, fcntl.LOCK_UN)
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        fcntl.flock(self._room, fcntl.LOCK_EX)

    def leave(self) -> None:
        fcntl.flock(self._room, fcntl.LOCK_UN)
        fcntl.flock(self._gate, fcntl.LOCK_UN)


class Sandbox:
    """A warm process that runs one notebook after another, each in fresh processes of its own.

    ``require``: raise SandboxError where there is no bubblewrap; otherwise ``warning`` says what is missing.
    """

    def __init__(self, *, require: bool = False) -> None:
        if not sys.platform.startswith("linux"):
            raise SandboxError("grading needs Linux: processes are watched and timed through /proc.")
        self.warning: str | None = None
        self.noise: dict | None = None
        self._noisy: str | None = None
        self._bubblewrap = shutil.which("bwrap")
        if not self._bubblewrap:
            self.warning = NO_SANDBOX
        elif reason := self._broken():
            self._bubblewrap, self.warning = None, BROKEN_SANDBOX.format(reason)
        if require and self.warning:
            raise SandboxError(self.warning)
        self._turns = Turns()
        self._busy = Lock()  # one notebook at a time, however many threads a worker has
        self._stopped = self._ready = False
        self._process: subprocess.Popen | None = None
        self._control = None
        self._rooms = False
        self._temporary: str | None = None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self,
        cells: list[dict],
        *,
        assignment: str,
        races: str = "now",
        only: list[int] | None = None,
        cell_seconds: float = 60,
        notebook_seconds: float = 600,
        most_restarts: int = MOST_RESTARTS,
    ) -> Executed:
        """Run a notebook's cells; ``only`` these tests, if given.

        With ``races="later"`` right answers are not timed, but put on the list ``waiting``; "again" is for
        the second try of a race that noise left undecided. Raises SandboxError where no process can be
        started.
        """
        with self._busy:
            return self._run(
                {
                    "cells": cells,
                    "only": only,
                    "races": races,
                    "home": assignment,
                    "cell_seconds": cell_seconds,
                    "notebook_seconds": notebook_seconds,
                    "most_restarts": most_restarts,
                },
            )

    def _run(self, work: dict) -> Executed:
        start, cells = time.monotonic(), work["cells"]
        executed = Executed(
            sandboxed=bool(self._bubblewrap), sources={c["index"]: c["source"] for c in cells}
        )
        names = {cell["index"]: cell["grade_id"] for cell in cells}
        executed.events += [
            {"cell": cell["grade_id"], "what": f"The code mentions `{word}`."}
            for cell in cells
            if cell["role"] == "student"
            for word in unusual_words(cell["source"])
        ]
        self._turns.together()
        finished = False
        try:
            self._start(cells)
            racing = work["races"] != "later" and any("race(" in cell["source"] for cell in cells)
            if racing and self.noise is None:
                self._check_machine()
            self._control.send(work, seconds=START_SECONDS)
            deadline = time.monotonic() + work["notebook_seconds"] + GRACE_SECONDS
            while True:
                message = self._control.receive(max(1.0, deadline - time.monotonic())).fields
                if "cell" in message:
                    self._take(executed, message, names)
                elif "want" in message or "done" in message:
                    before = time.monotonic()
                    if "want" in message:
                        self._turns.alone()
                    else:
                        self._turns.leave()
                        self._turns.together()
                    deadline += time.monotonic() - before
                    self._control.send({"go": True, "noisy": self._noisy}, seconds=START_SECONDS)
                elif "finished" in message:
                    finished, executed.seconds = True, message["seconds"]
                elif "over" in message:
                    break
        except (Gone, TooLate, Malformed):
            self.close()
        finally:
            self._turns.leave()
        if not finished:
            self.close()
            executed.events.append(
                {"cell": None, "what": "The judging process ended before its work was done."}
            )
        executed.seconds["total"] = time.monotonic() - start
        executed.noise = self.noise if executed.seconds.get("races") else None
        if not self._rooms:
            self.close()
        return executed

    def _take(self, executed: Executed, message: dict, names: dict[int, str | None]) -> None:
        """What one cell showed."""
        index = message["cell"]
        if message.get("later"):
            executed.waiting.append(index)
            return
        executed.outputs[index] = message["outputs"]
        executed.events += [{"cell": names[index], "what": what} for what in message["events"]]
        for output in message["outputs"]:
            card = output.get("data", {}).get(MIME, {})
            if card.get("outcome") == "undecided" and index not in executed.undecided:
                executed.undecided.append(index)

    def _check_machine(self) -> None:
        """Let the machine measure itself, before it judges for the first time."""
        from ..measuring import store

        self._turns.alone()
        try:
            self._control.send({"op": "selfcheck"}, seconds=START_SECONDS)
            reply = self._control.receive(START_SECONDS).fields
            self._control.receive(START_SECONDS)  # that it is over
        finally:
            self._turns.leave()
            self._turns.together()
        if "limits" in reply:
            store.write(*reply["limits"])
        self.noise = reply.get("noise") or {"noisy": reply.get("noisy")}
        self._noisy = reply.get("noisy")

    def begin(self) -> None:
        """Start the warm process, and do not wait until it is ready: it loads torch first."""
        mine, other = socket.socketpair()
        command = [sys.executable, "-m", "autograder.sandbox.forkserver"]
        if self._bubblewrap:
            command, environment = [*self._walls(), *command], {}
        else:
            self._temporary = tempfile.mkdtemp(prefix="grading-")
            environment = self._environment([self._temporary], rooms=False)
        self._process = subprocess.Popen(
            command,
            stdin=other,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=self._temporary,
        )
        other.close()
        self._control, self._ready = take(mine.detach()), False

    def _start(self, cells: list[dict]) -> None:
        """Have a warm process that is ready; a new one loads what the given cells import."""
        if self._stopped:
            raise SandboxError("the sandbox was stopped.")
        if self._process is None or self._process.poll() is not None:
            self.close()
            self.begin()
        if self._ready:
            return
        try:
            sources = [cell["source"] for cell in cells if cell["role"] != "student"]
            self._control.send({"modules": imported(cells), "sources": sources}, seconds=START_SECONDS)
            self._rooms = bool(self._control.receive(START_SECONDS).fields.get("rooms"))
        except (Gone, TooLate, Malformed):
            self._process.kill()
            said = (self._process.communicate()[1] or b"").decode(errors="replace").strip().splitlines()
            why = said[-1] if said else "no reason given"
            raise SandboxError(f"the process that runs submissions could not be started: {why}") from None
        self._ready = True
        if self._bubblewrap and not self._rooms:
            self.warning = NO_ROOMS

    def stop(self) -> None:
        """From another thread: end what runs, and start nothing any more."""
        self._stopped = True
        if process := self._process:
            process.kill()

    def _walls(self) -> list[str]:
        """bubblewrap's command line: what the processes inside can see."""
        folders = dict.fromkeys(
            str(Path(folder).resolve())
            for folder in ("/usr", sys.prefix, sys.base_prefix, sys.exec_prefix, PACKAGE)
        )
        temporary = "/scratch" if any(Path(folder).is_relative_to("/tmp") for folder in folders) else "/tmp"
        private = [temporary, "/dev/shm", HOST_PROC]
        walls = [self._bubblewrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        # Not root in there, not even by name: the kernel refuses rooms to a root without rights.
        walls += ["--uid", "1000", "--gid", "1000", "--clearenv"]
        for name, value in self._environment(private, rooms=True).items():
            walls += ["--setenv", name, value]
        walls += ["--tmpfs", "/tmp", "--proc", "/proc", "--dev", "/dev", "--tmpfs", temporary]
        # The kernel allows a room its own /proc only where a whole one is in sight; rooms cover this one.
        walls += ["--bind", "/proc", HOST_PROC]
        for folder in ("/bin", "/lib", "/lib32", "/lib64", "/sbin"):
            if os.path.islink(folder):
                walls += ["--symlink", os.readlink(folder), folder]
            elif os.path.isdir(folder):
                walls += ["--ro-bind", folder, folder]
        for folder in sorted(folders, key=len):
            walls += ["--ro-bind", folder, folder]
        for path in (
            "/etc/ld.so.cache",
            "/etc/passwd",
            "/etc/group",
            "/etc/fonts",
            "/etc/localtime",
            "/etc/alternatives",
        ):
            walls += ["--ro-bind-try", path, path]
        data = self._data()
        if data:
            walls += ["--ro-bind", str(data), "/data"]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "autograder"
        cache.mkdir(parents=True, exist_ok=True)
        walls += ["--ro-bind", str(cache), "/cache/autograder"]
        walls += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", temporary]
        if temporary != "/tmp":
            walls += ["--remount-ro", "/tmp"]
        return [*walls, "--"]

    def _environment(self, private: list[str], rooms: bool) -> dict[str, str]:
        data = self._data()
        threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")}
        return threads | {
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), "/usr/local/bin", "/usr/bin", "/bin"]),
            "PYTHONPATH": str(PACKAGE.parent),
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": private[0],
            "TMPDIR": private[0],
            "LANG": "C.UTF-8",
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "MPLCONFIGDIR": private[0],
            "XDG_CACHE_HOME": "/cache" if rooms else os.environ.get("XDG_CACHE_HOME", ""),
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_WAIT_POLICY": "PASSIVE",
            "AUTOGRADER_PRIVATE": ":".join(private),
            "AUTOGRADER_ROOMS": "yes" if rooms else "no",
            "AUTOGRADER_DATA": ("/data" if rooms else str(data)) if data else "",
        }

    def _data(self) -> Path | None:
        """The course's data folder, which exercises may read."""
        data = PACKAGE.parent / "data"
        return data if data.is_dir() else None

    def _broken(self) -> str | None:
        """Why bubblewrap does not work here, if it does not."""
        trial = subprocess.run(
            [
                self._bubblewrap,
                "--unshare-all",
                "--ro-bind",
                "/",
                "/",
                "--dev",
                "/dev",
                "--proc",
                "/proc",
                "true",
            ],
            capture_output=True,
            text=True,
        )
        return (trial.stderr.strip().splitlines() or ["no reason given"])[-1] if trial.returncode else None

    def close(self) -> None:
        """End the warm process and everything that came from it."""
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
