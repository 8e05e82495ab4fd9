"""A race between two processes, neither of which is believed: the code that decides the points for speed.

Both sides are copies of processes that were forked from the same one, pinned to the same core, and stopped
while the other runs. The same code in two processes can differ by tens of per cent, for as long as they live,
so the unit of evidence is the *launch*: copy both sides in random order, warm up, time a few pairs of blocks,
keep one ratio. The judge makes all inputs, a different one for each call. It gives the values of one input at
a time, and reads the result where it lies, in the side's memory; and from the one to the other it counts the
CPU time of everything that lives in the side's namespaces. So nothing is gained by computing several calls at
once, early or late.
"""

import math
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ...judging.calls import describe_error
from ...measuring.clocks import Function
from ...measuring.decide import decide
from ...measuring.duel import DuelError, Verdict, fresh_inputs
from ..answers.answer_handle import AnswerHandle
from ..answers.answer_link import AnswerEnded, AnswerLink, TimeLeft
from ..walls import linux
from ..wire.encode import Inputs
from ..wire.messages import Call, Go, Raised, Returned, Target
from .launches import Launches
from .side import forked, told


@dataclass(frozen=True)
class TimedRace:
    """Races of one submission.

    ``given`` is the process that ran the given cells only, and ``given_name`` gives the name that a function
    has there, or None; ``timing`` has cores for one race, and a list for what the given version took there
    (nothing of an answer may change how others are judged); ``error`` bounds the probability of each kind of
    wrong verdict.
    """

    answer: AnswerHandle
    given: AnswerHandle
    given_name: Callable[[object], str | None]
    time_left: TimeLeft
    timing: Callable[[], AbstractContextManager[tuple[Go, list[float]]]]
    error: float

    def duel(
        self, target: Target, against: Function, on: Function, *, threshold: float, tolerance: float | None
    ) -> Verdict:
        """Whether the answer is ``threshold`` times as fast as ``against`` (see ``judging.calls``).

        Raises DuelError where a side cannot be timed, AnswerError where a result is wrong or the rules are
        broken, TypeError and ValueError where the race makes no sense.
        """
        given = self.given_name(against)
        if given is None:
            raise ValueError("the given version of a race must be defined in a cell of the notebook.")
        if target.name is None or target.of is not None:
            raise TypeError("a race needs a function that the answer defines, not an object's method.")
        processes = {"slow": (given, self.given), "fast": (target.name, self.answer)}
        with self.timing() as (go, logs), linux.first_kept_free(go.cores) as core:
            for name, (_, process) in processes.items():
                with told(name):
                    process.use(self.time_left.of_cell)
            shares = target.name in self.answer.shares  # when it was checked
            self._call_once(given, on)
            launches = Launches(
                forked(processes, core, self.time_left), on, threshold, tolerance, self.time_left, shares
            )
            launches.plan()
            decision = decide(launches.ratios(), self.error, strays_are_rare=go.strays_are_rare)
            logs += map(math.log, launches.given_seconds)
            return launches.verdict(decision, "cpu", not go.strays_are_rare)

    def _call_once(self, given: str, on: Function) -> None:
        """Call the given version in the process that is copied, as the answer was when it was checked: what a
        first call leaves behind (code that a library compiled, free memory) is then in the copies of both.
        """
        inputs = Inputs()
        nodes = [inputs.node(value) for value in fresh_inputs(on, secrets.randbits(63), "cpu")]
        call = Call(Target(given), nodes, {}, inputs.places(), None)
        link = AnswerLink(self.given, self.time_left, [])
        try:
            with inputs.shared() as shared:
                reply, _ = link.ask(call, Returned | Raised, files=[shared.file])
        except AnswerEnded as error:
            raise DuelError(f"'slow' raised {describe_error(error)}") from None
        if isinstance(reply, Raised):
            raise DuelError(f"'slow' raised {reply.told}")
