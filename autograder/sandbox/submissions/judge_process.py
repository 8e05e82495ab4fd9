"""The process that judges one submission: it runs given cells and tests, and never the student's code.

The student's cells run in the answer's process (``answer_process``); tests reach what they defined through
proxies (``proxies``). Where a test costs that process its life, a fresh one runs the cells so far again.
"""

import ast
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from typing import Any

from ...judging.calls import CallLimit, call_limit
from ...judging.outcome import MIME
from ...measuring.duel import TooNoisy
from ...roles import NOT_RUN, PROCESS_ENDED, TIMED_OUT, defined_names
from ...show import first_of
from ..answers.answer_handle import AnswerHandle, Ended
from ..answers.answer_link import AnswerLink, TimeLeft, TimeUp
from ..answers.cells import CellShell
from ..racing.timed_race import TimedRace
from ..wire import decode
from ..wire.channel import Channel, TooLate
from ..wire.messages import CellDone, Finished, Go, PlannedCell, RunNotebook, WantCores, parse
from ..wire.outputs import Outputs
from .plan import modules
from .proxies import Names
from .suspicious_words import unusual_words

MOST_SHOWN = 20_000_000  # characters that all cells of a student may show together
NO_COMPILER = (
    "The machine that graded this has no C++ compiler, so torch.compile gave functions back as they were."
)


class JudgeProcess:
    """Runs the cells of one submission; says after each what it showed."""

    def __init__(self, control: Channel, forkserver: Channel, work: RunNotebook) -> None:
        self._control, self._work = control, work
        self._suspicious: list[str] = []
        self._time = TimeLeft(work.notebook_seconds)
        files = {name: content for name, content in work.files.items() if content is not None}
        self._answer = AnswerHandle(forkserver, self._suspicious, work.assignment, files)
        self._given = AnswerHandle(forkserver, [], work.assignment)  # of the given cells only
        # Here, and not in the grader's process: to parse what a student wrote may take any time.
        self._looks = looks(work)
        sources = [cell.source for cell in work.cells if cell.role == "student"]
        sources += modules(work.files).values()
        unusual = sorted(set(chain(*map(unusual_words, sources))))
        self._link = AnswerLink(self._answer, self._time, unusual)
        self._remarks = _left_out(work.files)
        self._call_limit = CallLimit(core_time=self._time.core_time)
        if any("torch.compile" in source for source in sources):
            # A first call may compile for half a minute.
            self._call_limit = replace(self._call_limit, seconds=work.cell_seconds)
            if not shutil.which("g++"):
                self._remarks += _remark(NO_COMPILER)
        races = TimedRace(self._answer, self._given, self._name_of, self._time, self._timing, work.error)
        self._names = Names(self._link, races, released_names(work.cells))
        self._shell: CellShell = CellShell.instance()
        self._shown = 0
        self._given_up: dict[str | None, str | None] = {}
        self._restarts = 0
        self._waited = 0.0
        self._raced = 0.0  # core-seconds of races in this cell
        self._seconds = {"cells": 0.0, "tests": 0.0, "races": 0.0}

    def run(self) -> None:
        """Run all cells, in their order."""
        call_limit.set(self._call_limit)
        for cell in self._work.cells:
            if cell.role == "test" and self._work.only is not None and cell.index not in self._work.only:
                continue
            start, apart, self._raced = time.monotonic(), self._seconds["races"] + self._waited, 0.0
            self._suspicious[:] = self._looks.pop(cell.index, [])
            outputs = self._run(cell)
            if cell.role != "test":
                outputs, self._remarks = self._remarks + outputs, []
            kind = "tests" if cell.role == "test" else "cells"
            apart = self._seconds["races"] + self._waited - apart
            took = time.monotonic() - start - apart
            self._seconds[kind] += took
            events = list(dict.fromkeys(self._suspicious))
            self._control.send(CellDone(cell.index, outputs, events, took + self._raced))
        self._answer.end()
        self._given.end()
        self._control.send(Finished(self._seconds))

    def _run(self, cell: PlannedCell) -> list[dict[str, Any]]:
        """The outputs of one cell."""
        left = self._time.submission.left()
        self._link.begin_cell()
        self._time.begin_cell(self._work.cell_seconds)
        if cell.role == "test" and cell.exercise in self._given_up:
            test = self._given_up[cell.exercise]
            return _problem(NOT_RUN, f"Not run, because the test `{test}` above did not end by itself.")
        if left <= 0:
            seconds = self._work.notebook_seconds
            return _problem(NOT_RUN, f"Not run: the notebook had used up its {seconds:g} seconds.")
        if cell.role == "test":
            return self._test(cell)
        if cell.role == "given":
            outputs = self._execute(cell.source)
            self._given.end()  # a new process runs this cell, too
            self._given.cells.append(cell.source)
            with suppress(TooLate, Ended):
                self._answer.run(cell.source, self._time.of_cell)
            return outputs
        return self._run_answer(cell)

    def _run_answer(self, cell: PlannedCell) -> list[dict[str, Any]]:
        """A cell of the student's, in the answer's process."""
        most = self._work.most_restarts
        if self._restarts > most:
            why = f"Not run: the Python process had to be started again {most} times before."
            return _problem(NOT_RUN, why)
        limit = self._time.of_cell()
        try:
            outputs = decode.outputs(self._answer.run(cell.source, self._time.of_cell)).items
            self._shown += len(str(outputs))
            if self._shown > MOST_SHOWN:
                most = MOST_SHOWN // 1_000_000
                return _remark(f"(left out: the cells up to here had shown more than {most} MB)")
            return outputs
        except TooLate:
            self._restarts += 1
            return _problem(TIMED_OUT, _too_long(limit))
        except Ended as error:
            self._restarts += 1
            return _problem(PROCESS_ENDED, _ended(str(error)))

    def _test(self, cell: PlannedCell) -> list[dict[str, Any]]:
        """A test cell, here."""
        try:
            outputs = self._execute(cell.source)
            cards = (output.get("data", {}).get(MIME, {}) for output in outputs)
            if any(lap["too_fast"] for card in cards for lap in card.get("laps", [])):
                self._suspicious.append("The answer was faster than this machine can be.")
            return outputs
        except TimeUp:
            self._given_up[cell.exercise] = cell.grade_id
            limit = min(self._work.cell_seconds, self._work.notebook_seconds)
            return _problem(TIMED_OUT, _too_long(limit))

    def _execute(self, source: str) -> list[dict[str, Any]]:
        """Run a cell of the instructor's in this process; its last expression is its result."""
        self._shell.outputs = outputs = Outputs()
        try:
            with self._shell.streams():
                try:
                    tree = ast.parse(source)
                except SyntaxError:  # Python with commands of IPython's is none
                    tree = ast.parse(self._shell.transform_cell(source))
                last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
                exec(compile(tree, "<cell>", "exec"), self._names)
                if isinstance(last, ast.Expr):
                    value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), self._names)
                    if value is not None:
                        assert self._shell.display_formatter is not None
                        data, metadata = self._shell.display_formatter.format(value)
                        outputs.bundle("execute_result", data, metadata)
        except Exception as error:
            name = type(error).__name__
            outputs.error(name, str(error), [f"{name}: {error}"])
        except SystemExit:
            outputs.error("SystemExit", "the cell called exit()", ["SystemExit"])
        return outputs.items

    def _name_of(self, value: object) -> str | None:
        """The name that a value has in this notebook."""
        return next((name for name, found in self._names.items() if found is value), None)

    @contextmanager
    def _timing(self) -> Iterator[tuple[Go, list[float]]]:
        """Have cores for a race. Raises TooNoisy where the machine cannot judge."""
        go = self._wait_for(WantCores(race=True))
        start, logs = time.monotonic(), list[float]()
        try:
            if go.noisy:
                raise TooNoisy(go.noisy)
            self._time.begin_cell(self._work.cell_seconds)  # a race has the time of a whole cell
            yield go, logs
        finally:
            took = time.monotonic() - start
            self._seconds["races"] += took
            self._raced += len(go.cores) * took
            self._wait_for(WantCores(race=False, logs=logs))

    def _wait_for(self, what: WantCores) -> Go:
        """Say what is wanted, and wait for it: that is not this submission's time."""
        start = time.monotonic()
        self._control.send(what)
        go = parse(self._control.receive(), Go)
        waited = time.monotonic() - start
        self._waited += waited
        self._time.put_off(waited)
        return go


def looks(work: RunNotebook) -> dict[int, list[str]]:
    """By the index of a cell what is suspicious in its code; with the first one comes what is in files."""
    found = {
        cell.index: [f"The code mentions `{word}`." for word in unusual_words(cell.source)]
        for cell in work.cells
        if cell.role == "student"
    }
    in_files = [
        f"The file `{name}` mentions `{word}`."
        for name, source in modules(work.files).items()
        for word in unusual_words(source)
    ]
    if in_files and work.cells:
        first = work.cells[0].index
        found[first] = in_files + found.get(first, [])
    return found


def released_names(cells: Iterable[PlannedCell]) -> set[str]:
    """The names that tests may look up in the answer's process."""
    found: set[str] = set()
    for cell in cells:
        if cell.names is not None:
            found.update(cell.names)
        elif cell.role == "student":
            found |= defined_names(cell.source)
    return found


def _left_out(files: Mapping[str, bytes | None]) -> list[dict[str, Any]]:
    """The output that tells which of the files beside the notebook are not here; none if all are."""
    names = sorted(name for name, content in files.items() if content is None)
    if not names:
        return []
    return _remark(
        f"Not there when this was graded: {first_of(names, 10)}. Grading takes files beside the "
        "notebook, not too many and not too large ones: hand in only what the notebook needs."
    )


def _remark(sentence: str) -> list[dict[str, Any]]:
    """The output that tells a student something."""
    outputs = Outputs()
    outputs.stream("stderr", f"{sentence}\n")
    return outputs.items


def _problem(name: str, message: str) -> list[dict[str, Any]]:
    """The outputs of a cell that did not end by itself, or was not run."""
    outputs = Outputs()
    outputs.error(name, message, [message])
    return outputs.items


def _too_long(limit: float) -> str:
    return (
        f"This cell ran longer than {limit:.0f} seconds, the time limit, and was stopped. "
        "Look for a loop that never ends, or for work that grows too fast with the size of the input."
    )


def _ended(why: str) -> str:
    return (
        f"This cell ended the Python process that it ran in{f': {why}' if why else ''}. Possible causes: a "
        "call such as `exit()` or `os._exit()`, more memory than there is, or a crash inside a library. The "
        "cells after it ran in a fresh process, in which the earlier cells were run again."
    )
