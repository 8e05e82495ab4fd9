"""What stands between the test cells and the answer's process.

The proxies (``proxies``) know nothing but this link.
"""

import os
import random
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ...judging.calls import AnswerError, FailedElsewhere
from ...measuring.costs import Costs
from ...measuring.countdown import CoreTime, Countdown
from ..walls import linux
from ..walls.memory_use import MemoryUse
from ..wire import decode
from ..wire.channel import POLL_SECONDS, Frame, Gone, Malformed, TooLate
from ..wire.encode import Storage
from ..wire.messages import CountedCosts, Found, Hello, Message, ObjectNode, Said, SendAgain, Settle, Value
from .answer_handle import AnswerHandle, Connection, Ended

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import TypeForm

MOST_RECEIVED = 2 << 30
ALL_WATCHED = 8  # calls of one count; of more, each has a smaller probability than the one before
LOOK_SECONDS = 1e-3  # between two looks at the memory of a call
NOT_SEEN = (
    "a process or a thread ended during a call, or cannot be looked at, and with it how much memory it used, "
    "so your instructor looks at that."
)

M = TypeVar("M")


class TimeUp(BaseException):
    """The cell's time is over. Not an Exception, so that nothing on the way keeps it."""


class AnswerEnded(RuntimeError):
    """The process that the answer ran in is gone."""


class TimeLeft:
    """The time of a ``submission``, and of the ``cell`` that runs now, in seconds.

    Waiting for the machine, or for one of its cores while others keep it busy, is not part of it.
    """

    def __init__(self, seconds: float) -> None:
        self.core_time = CoreTime(_processes_of_the_submission)
        self.submission = Countdown(seconds, self.core_time)
        self.cell = Countdown(seconds, self.core_time)

    def begin_cell(self, seconds: float) -> None:
        """A cell begins that may take so long, within the submission's time."""
        self.cell = Countdown(seconds, self.core_time)

    def of_cell(self) -> float:
        """What is left of the cell's time; 0 when it is used up."""
        return min(self.cell.left(), self.submission.left())

    def of_step(self, seconds: float) -> Callable[[], float]:
        """A function that says what is left of so many seconds, which begin now."""
        return Countdown(seconds, self.core_time).left

    def put_off(self, seconds: float) -> None:
        """So long was spent waiting for the machine."""
        self.submission.put_off(seconds)
        self.cell.put_off(seconds)


def _processes_of_the_submission() -> list[int]:
    """All that come from the fork server, as this one does, but not what this one keeps a core awake with."""
    own = linux.children(os.getpid())
    return [pid for pid in linux.with_descendants(os.getppid()) if pid not in own]


class MemoryOfACall:
    """What the answer's processes use in a call with ``inputs`` (bytes). Raises OSError where one hides."""

    def __init__(self, connection: Connection, inputs: int) -> None:
        # First the newest: what begins while we look is then one too many.
        self._connection, self._newest = connection, connection.newest_process()
        pids = connection.members()
        self._threads = linux.live_threads(pids)
        self._use = MemoryUse(pids, inputs)
        connection.look, connection.channel.poll_seconds = self._use.look, LOOK_SECONDS

    def add_to(self, cost: Costs, copied: int) -> None:
        """Add it to what was counted; handing over took so many bytes that were ``copied``."""
        self._connection.look, self._connection.channel.poll_seconds = None, POLL_SECONDS
        pids = self._connection.members()
        try:
            cost.used_bytes = self._use.most(pids, cost.peak_bytes + copied)
            now = linux.live_threads(pids)
            started = self._connection.newest_process() - self._newest
            unseen = not 0 <= started <= len(now - self._threads)  # numbers begin anew at their end
        except OSError:
            unseen = True
        if unseen:
            cost.doubt = cost.doubt or AnswerError("undecided", NOT_SEEN, right=True)


class AnswerLink:
    """Asks the answer's process, within the time of a cell, and reads what it answers.

    ``unusual`` are the words in the student's code for which an instructor looks at what its process says.
    """

    def __init__(self, process: AnswerHandle, time_left: TimeLeft, unusual: Sequence[str]) -> None:
        self.process, self.time_left, self._unusual = process, time_left, unusual
        self.random = random.SystemRandom()
        self._received = 0

    def begin_cell(self) -> None:
        """A new cell may receive as much again."""
        self._received = 0

    @property
    def connection(self) -> Connection:
        """The process, after the last cell. Raises TimeUp or AnswerEnded."""
        try:
            return self.process.use(self.time_left.of_cell)
        except TooLate:
            raise TimeUp from None
        except Ended as error:
            raise AnswerEnded("the answer ended the process that it ran in") from _how(error)

    def ask(self, request: Message, kind: "TypeForm[M]", files: Sequence[int] = ()) -> tuple[M, Frame]:
        """Send a request; gives its reply, and the frame with its payload.

        Raises TimeUp, or AnswerEnded where there is no sound reply.
        """
        if not self.time_left.of_cell():
            raise TimeUp
        connection = self.connection
        try:
            connection.channel.send(request, files=files, seconds=self.time_left.of_cell)
            reply, frame = connection.reply(kind, self.time_left.of_cell)
            self._received += len(frame.payload)
            if self._received > MOST_RECEIVED:
                raise Ended(f"it gave more than {MOST_RECEIVED >> 30} GiB of results in one cell")
            return reply, frame
        except TooLate:
            self.process.end()
            raise TimeUp from None
        except (Ended, Gone) as error:
            self.process.end()
            raise AnswerEnded("the answer ended the process that it ran in") from _how(error)
        except BaseException:  # a time limit: what the process does now is no answer any more
            self.process.end()
            raise

    def read(
        self,
        node: Value,
        frame: Frame,
        make_object: Callable[[ObjectNode], object],
        storages: Sequence[Storage] = (),
    ) -> tuple[Any, decode.Reader]:
        """The value that a node of a reply stands for. What is no value costs the points of the test."""
        reader = decode.Reader(frame.payload, storages, make_object)
        try:
            return reader.value(node), reader
        except Malformed as error:
            self.process.suspicious.append(f"The answer's process sent {error}.")
            self.process.end()
            raise AnswerError("error", f"the result cannot be read: {error}.") from None

    def costs(self, counted: CountedCosts | None, probe: int) -> Costs:
        """Counted costs, with a doubt where the count may not be believed."""
        cost = decode.costs_without_probe(counted, probe)
        if cost is None:
            self.process.suspicious.append(
                "The counted costs of a call did not hold operations that were surely there."
            )
            problem = AnswerError(
                "error",
                "the operations of your function could not be counted: something in your code changes "
                "how torch is watched.",
            )
            cost = Costs(doubt=problem)
        elif self._unusual:
            # It is taken in the answer's process, by means that such code can switch off.
            why = f"your code mentions `{self._unusual[0]}`, so your instructor looks at what it counted."
            cost.doubt = AnswerError("undecided", why, right=True)
        return cost

    def watch_memory(self, cost: Costs, inputs: int) -> MemoryOfACall | None:
        """From now on, see how much memory the answer's processes use in one of the calls that are counted.

        None where this machine does not let us, and for some calls of many: a look takes 30 ms.
        """
        cost.calls += 1
        if self.random.random() * cost.calls > ALL_WATCHED or not self.connection.open_to_looks:
            return None
        self.ask(Settle(), Hello)
        try:
            return MemoryOfACall(self.connection, inputs)
        except OSError:
            cost.doubt = cost.doubt or AnswerError("undecided", NOT_SEEN, right=True)
            return None

    def result_follows(self, inputs: "np.ndarray", frame: Frame) -> bool:
        """Whether the last call's result, which came with a frame, changes with the inputs.

        Then it lies in their memory, wherever its process says that it does.
        """
        inputs ^= 0xFF
        _, now = self.ask(SendAgain(), Found)
        inputs ^= 0xFF
        return now.payload != frame.payload[: len(now.payload)]  # changes of the inputs may come after it

    def pass_on(self, said: Said) -> None:
        """Show what the answer printed, and what it warned of."""
        for line in said.warnings:
            print(line, file=sys.stderr)
        for item in decode.outputs(said.printed).items:
            print(item["text"], end="", file=sys.stderr if item["name"] == "stderr" else sys.stdout)


def _how(error: Ended | Gone) -> FailedElsewhere:
    why = str(error)
    return FailedElsewhere(
        "The call ended the Python process that it ran in"
        + (f": {why}." if why else ".")
        + " Possible causes: `exit()` or `os._exit()`, too much memory, or a crash in a library."
    )
