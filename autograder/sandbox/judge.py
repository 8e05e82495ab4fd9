"""The process that judges one submission: it runs given cells and tests, and never the student's code.

The student's cells run in a process of their own (``student``); tests reach what they defined through
stand-ins. Where a test costs that process its life, a fresh one runs the cells so far again.
"""

from __future__ import annotations

import ast
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..judging.calls import AnswerError
from ..measuring.costs import Costs
from ..measuring.selfcheck import TooNoisy
from ..roles import NOT_RUN, PROCESS_ENDED, TIMED_OUT, unusual_words
from .answer_link import Ended, Template, Worker
from .cells import CellShell, Outputs
from .channel import Channel, Malformed, Message, TooLate
from .proxies import AnswerEnded, Names, Remote, RemoteObject, class_named, counts_from
from .wire import Reader

MOST_RECEIVED = 2 << 30
PICTURES = {"image/png", "image/jpeg"}


class TimeUp(BaseException):
    """The cell's time is over. Not an Exception, so that nothing on the way keeps it."""


class Later(BaseException):
    """This race is to be timed in a later pass."""


class Judge:
    """Runs the cells of one submission; says after each what it showed."""

    def __init__(self, control: Channel, spawner: Channel, work: dict) -> None:
        self.control, self.cells = control, work["cells"]
        self.only, self.later = work["only"], work["races"] == "later"
        self.cell_seconds = work["cell_seconds"]
        self.end = time.monotonic() + work["notebook_seconds"]
        self.notebook_seconds, self.most_restarts = work["notebook_seconds"], work["most_restarts"]
        self.home = work["home"]
        self.suspicious: list[str] = []
        self._received = 0
        self._spawner = spawner
        self.student = Template(spawner, self.suspicious, self.home)
        self._given: Template | None = None
        self._given_cells: list[str] = []
        self.names = Names(self)
        self.shell: CellShell = CellShell.instance()
        self.random = random.SystemRandom()
        self._cell_end = self.end
        self._given_up: dict[str, str] = {}
        self._restarts = 0
        self._waited = 0.0
        self.seconds = {"cells": 0.0, "tests": 0.0, "races": 0.0}

    def run(self) -> None:
        """Run all cells, in their order."""
        for cell in self.cells:
            start, apart = time.monotonic(), self.seconds["races"] + self._waited
            self.suspicious.clear()
            outcome = self._run(cell)
            kind = "tests" if cell["role"] == "test" else "cells"
            self.seconds[kind] += time.monotonic() - start - (self.seconds["races"] + self._waited - apart)
            if outcome is not None:
                events = list(dict.fromkeys(self.suspicious))
                self.control.send({"cell": cell["index"], "events": events, **outcome})
        self.student.end()
        if self._given:
            self._given.end()
        self.control.send({"finished": True, "seconds": self.seconds})

    def _run(self, cell: dict) -> dict | None:
        left = self.end - time.monotonic()
        self._received = 0
        self._cell_end = time.monotonic() + min(self.cell_seconds, max(left, 1.0))
        if cell["role"] == "test":
            if self.only is not None and cell["index"] not in self.only:
                return None
            if cell["exercise"] in self._given_up:
                test = self._given_up[cell["exercise"]]
                return problem(NOT_RUN, f"Not run, because the test `{test}` above did not end by itself.")
        if left <= 0:
            return problem(
                NOT_RUN, f"Not run: the notebook had used up its {self.notebook_seconds:g} seconds."
            )
        if cell["role"] == "test":
            return self._test(cell)
        if cell["role"] == "given":
            outputs = self._execute(cell["source"])
            self._given_cells.append(cell["source"])
            with suppress(TooLate, Ended):
                self.student.run(cell["source"], self.left())
            return {"outputs": outputs}
        return self._answer(cell)

    def _answer(self, cell: dict) -> dict:
        """A cell of the student's, in the student's process."""
        if self._restarts > self.most_restarts:
            return problem(
                NOT_RUN,
                f"Not run: the Python process had to be started again {self.most_restarts} times before.",
            )
        limit = self.left()
        try:
            return {"outputs": sound(self.student.run(cell["source"], limit))}
        except TooLate:
            self._restarts += 1
            return problem(TIMED_OUT, too_long(limit))
        except Ended as error:
            self._restarts += 1
            return problem(PROCESS_ENDED, ended(str(error)))

    def _test(self, cell: dict) -> dict:
        """A test cell, here."""
        try:
            return {"outputs": self._execute(cell["source"])}
        except Later:
            return {"outputs": [], "later": True}
        except TimeUp:
            self._given_up[cell["exercise"]] = cell["grade_id"]
            return problem(TIMED_OUT, too_long(min(self.cell_seconds, self.notebook_seconds)))

    def _execute(self, source: str) -> list[dict]:
        """Run a cell of the instructor's in this process; its last expression is its result."""
        self.shell.outputs = outputs = Outputs()
        try:
            with self.shell.streams():
                tree = ast.parse(self.shell.transform_cell(source))
                last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
                exec(compile(tree, "<cell>", "exec"), self.names)
                if last is not None:
                    value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), self.names)
                    if value is not None:
                        data, metadata = self.shell.display_formatter.format(value)
                        outputs.bundle("execute_result", data, metadata)
        except Exception as error:
            name = type(error).__name__
            outputs.error(name, str(error), [f"{name}: {error}"])
        except SystemExit:
            outputs.error("SystemExit", "the cell called exit()", ["SystemExit"])
        return outputs.items

    # What stand-ins ask for

    def ask(self, fields: dict, files: list[int]) -> Message:
        """Send a request to the student's process."""
        if time.monotonic() > self._cell_end:
            raise TimeUp
        try:
            reply = self.worker.ask(fields, files=files, seconds=self.left())
            self._received += len(reply.payload)
            if self._received > MOST_RECEIVED:
                raise Ended(f"it gave more than {MOST_RECEIVED >> 30} GiB of results in one cell")
            return reply
        except TooLate:
            self.student.end()
            raise TimeUp from None
        except Ended as error:
            self.student.end()
            raise AnswerEnded(str(error)) from None
        except BaseException:  # a time limit: what the process does now is no answer any more
            self.student.end()
            raise

    def look(self, what: dict) -> object:
        """What a name or an attribute stands for in the student's process. Raises AttributeError."""
        reply = self.ask({"op": "look", **what}, [])
        kind = reply.fields.get("kind")
        if kind == "callable":
            return Remote(self, what)
        if kind == "value":
            return self.reading(Reader(reply.payload, None, self.object_of), reply.fields.get("value"))
        raise AttributeError(f"there is no {what['name']!r}")

    def reading(self, reader: Reader, node: object) -> object:
        """The value that a process of the student's sent. What is no value costs the points of the test."""
        try:
            return reader.value(node)
        except Malformed as error:
            self.suspicious.append(f"The answer's process sent {error}.")
            self.student.end()
            raise AnswerError("error", f"the result cannot be read: {error}.") from None

    def object_of(self, node: dict) -> object:
        """A stand-in for an object that stays in the student's process."""
        number = node.get("v")
        return class_named(node.get("type"))(self, {"object": number, "name": None})

    def number_of(self, value: object) -> int | None:
        """The number by which the student's process knows an object."""
        return value._target["object"] if isinstance(value, RemoteObject) else None

    def counts_of(self, data: object, probes: int) -> Costs:
        """Counted costs, if the count is sound."""
        mentioned = {w for c in self.cells if c["role"] == "student" for w in unusual_words(c["source"])}
        if mentioned:
            # The count is taken in the student's process, by means that such code can switch off.
            raise AnswerError(
                "undecided",
                f"your code mentions `{min(mentioned)}`, so your instructor looks at its costs.",
                right=True,
            )
        cost = counts_from(data, probes)
        if cost is None:
            self.suspicious.append(
                "The counted costs of a call did not hold operations that were surely there."
            )
            raise AnswerError(
                "error",
                "the operations of your function could not be counted: something in your code changes "
                "how torch is watched.",
            )
        return cost

    def pass_on(self, reply: Message) -> None:
        """Show what the answer printed, and what it warned of."""
        said, shown = reply.fields.get("said"), reply.fields.get("shown")
        for line in said if isinstance(said, list) else []:
            print(str(line)[:2000], file=sys.stderr)
        for item in sound(shown):
            print(item["text"], end="", file=sys.stderr if item["name"] == "stderr" else sys.stdout)

    def given_process(self) -> Template:
        """A process that ran the given cells only."""
        if self._given is None or self._given.cells != self._given_cells:
            if self._given:
                self._given.end()
            self._given = Template(self._spawner, [], self.home)
            self._given.cells = list(self._given_cells)
        return self._given

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Have the machine alone. Raises Later, or TooNoisy where the machine cannot judge."""
        if self.later:
            raise Later
        reply = self._turn({"want": "timing"})
        start = time.monotonic()
        try:
            if noisy := reply.fields.get("noisy"):
                raise TooNoisy(noisy)
            self._cell_end = max(self._cell_end, min(self.end, start + self.cell_seconds))
            yield
        finally:
            self.seconds["races"] += time.monotonic() - start
            self._turn({"done": "timing"})

    def _turn(self, what: dict) -> Message:
        """Say what is wanted, and wait for it; others' turns do not count as this submission's time."""
        start = time.monotonic()
        self.control.send(what)
        reply = self.control.receive()
        waited = time.monotonic() - start
        self._waited += waited
        self.end += waited
        self._cell_end += waited
        return reply

    def has_time(self) -> bool:
        """Whether there is time left for another launch."""
        return time.monotonic() < self._cell_end

    @property
    def worker(self) -> Worker:
        """The student's process, after the last cell."""
        try:
            return self.student.use(self.left())
        except TooLate:
            raise TimeUp from None
        except Ended as error:
            raise AnswerEnded(str(error)) from None

    def left(self) -> float:
        """Seconds that the current cell may still take."""
        return max(0.05, self._cell_end - time.monotonic())


def problem(name: str, message: str) -> dict:
    """The outputs of a cell that did not end by itself, or was not run."""
    outputs = Outputs()
    outputs.error(name, message, [message])
    return {"outputs": outputs.items}


def too_long(limit: float) -> str:
    return (
        f"This cell ran longer than {limit:.0f} seconds, the time limit, and was stopped. "
        "Look for a loop that never ends, or for work that grows too fast with the size of the input."
    )


def ended(why: str) -> str:
    return (
        f"This cell ended the Python process that it ran in{f': {why}' if why else ''}. Possible causes: a "
        "call such as `exit()` or `os._exit()`, more memory than there is, or a crash inside a library. The "
        "cells after it ran in a fresh process, in which the earlier cells were run again."
    )


def sound(items: object) -> list[dict]:
    """Outputs as a student's process tells them, cut down to text and pictures."""
    outputs = Outputs()
    for item in items if isinstance(items, list) else []:
        if not isinstance(item, dict):
            continue
        kind, data = item.get("output_type"), item.get("data")
        if kind == "stream" and item.get("name") in ("stdout", "stderr"):
            outputs.stream(item["name"], str(item.get("text", "")))
        elif kind in ("display_data", "execute_result") and isinstance(data, dict):
            kept = {
                name: value
                for name, value in data.items()
                if isinstance(value, str) and (name == "text/plain" or name in PICTURES)
            }
            if kept:
                outputs.bundle(kind, kept)
        elif kind == "error":
            lines = item.get("traceback")
            lines = [str(line) for line in lines] if isinstance(lines, list) else []
            outputs.error(str(item.get("ename", ""))[:200], str(item.get("evalue", "")), lines)
    return outputs.items
