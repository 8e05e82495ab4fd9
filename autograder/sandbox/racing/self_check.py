"""Before a machine judges, it judges itself: the grading judge times a function against itself."""

import itertools
import math

from ...measuring import limits
from ...measuring.duel import TooNoisy
from ...measuring.selfcheck import matrix, settle
from ..answers.answer_handle import AnswerHandle
from ..answers.answer_link import TimeLeft
from ..walls import linux
from ..wire.channel import Channel
from ..wire.messages import MachineChecked
from .launches import Launches
from .side import forked
from .undisturbed import SIDES

LAUNCHES = 8
SECONDS = 60.0

_CELL = """
def work(matrix):
    return matrix @ matrix
"""


def check_machine(forkserver: Channel, cores: list[int]) -> MachineChecked:
    """The machine's noise as the judge sees it on the first of these cores, and the machine's limits."""
    logs: list[float] = []

    def measure() -> list[float]:
        logs[:] = _ratios(forkserver, cores)
        return logs

    try:
        noise = settle(measure)
    except TooNoisy as problem:
        noise = {"noisy": str(problem)}
    return MachineChecked(noise, logs, limits.kept_as("cpu", 1), limits.rates("cpu", 1))


def _ratios(forkserver: Channel, cores: list[int]) -> list[float]:
    """Log-ratios of identical functions, one a launch."""
    time_left = TimeLeft(SECONDS)
    processes = {name: AnswerHandle(forkserver, [], "selfcheck") for name in SIDES}
    try:
        for process in processes.values():
            process.run(_CELL, time_left.of_cell)
        with linux.first_kept_free(cores) as core:
            sides = {name: ("work", process) for name, process in processes.items()}
            launches = Launches(forked(sides, core, time_left), matrix, 1.0, None, time_left)
            launches.plan()
            return [math.log(ratio) for ratio in itertools.islice(launches.ratios(), LAUNCHES)]
    finally:
        for process in processes.values():
            process.end()
