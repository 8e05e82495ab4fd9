"""The judge for code that nobody trusts: three cells of a notebook that nobody sees, run in the sandbox."""

from __future__ import annotations

import atexit
import functools
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from ..judging.calls import AnswerError
from ..judging.outcome import MIME
from ..measuring import duel
from ..measuring.clocks import present
from ..roles import PROCESS_ENDED, TIMED_OUT
from ..sandbox import Executed, Sandbox, SandboxError, walls
from .api import OWN_CODE
from .sources import Source, load, with_device
from .verdict import Verdict

# The given version's file, and the inputs', are run where the judge is, and in the given version's process. (In
# the answer's, too, which gets nothing from it: its test looks up one name, which nobody else knows.)
GIVEN = """\
from autograder.judge.sources import load, with_device
given_{key} = load({given_path!r}, {given.name!r}, {given_text!r})
inputs_{key} = with_device(load({inputs_path!r}, {inputs.name!r}, {inputs_text!r}))
"""
ANSWER = """\
from autograder.judge.sources import load
answer_{key} = load({answer.path.name!r}, {answer.name!r})
"""
RACE = """\
from autograder.judge.inside import race
race(answer_{key}, given_{key}, inputs_{key}, {at_least!r}, {tolerance!r})
"""


def judge_sandboxed(
    answer: Source,
    given: Source,
    inputs: Source,
    *,
    verdict: Verdict,
    tolerance: float | None,
    seconds: float,
    tell: Callable[[str], None],
) -> Verdict:
    """Fill in the verdict (see ``api.judge``). Raises SourceError."""
    tell("looking at the sandbox")
    if why := walls.why_not():
        return verdict.said("not run", f"{why} Nothing was run. {OWN_CODE}")
    if verdict.device != "cpu":
        return _on_device(answer, given, inputs, verdict, tolerance, tell)
    values = {
        "key": secrets.token_hex(8),
        "answer": answer,
        "given": given,
        "given_path": str(given.path),
        "given_text": given.text(),
        "inputs": inputs,
        "inputs_path": str(inputs.path),
        "inputs_text": inputs.text(),
        "at_least": verdict.at_least,
        "tolerance": tolerance,
    }
    cells = []
    for index, (role, source) in enumerate((("given", GIVEN), ("student", ANSWER), ("test", RACE))):
        cell = {"index": index, "role": role, "source": source.format(**values), "grade_id": role}
        cells.append(cell | {"exercise": "race", "names": [f"answer_{values['key']}"]})
    run = functools.partial(
        _sandbox().run,
        cells,
        assignment="race",
        files={answer.path.name: answer.path.read_bytes()},
        cell_seconds=seconds,
        notebook_seconds=4 * seconds,
        tell=lambda step: tell(step.doing),
    )
    try:
        executed = run(races="now")
        if executed.undecided:
            executed = executed.merged(run(races="again", only=executed.undecided))
    except SandboxError as error:
        return verdict.said("not run", str(error))
    return _read(executed, verdict, seconds)


@functools.cache
def _sandbox() -> Sandbox:
    """This process's sandbox, which takes seconds to start; it ends with the process."""
    box = Sandbox()
    atexit.register(box.close)
    return box


def _read(executed: Executed, verdict: Verdict, seconds: float) -> Verdict:
    """The verdict that the cells showed."""
    for index, who in enumerate((verdict.given, verdict.answer, "the check and the race")):
        for output in executed.outputs.get(index, []):
            if output["output_type"] == "error":
                return verdict.said("not run", _why(output, who.partition(":")[0], seconds))
            if card := output.get("data", {}).get(MIME) if index == 2 else None:
                if not card["facts"]:
                    return verdict.said(card["outcome"], card["why"])
                return verdict.timed(msgspec.convert(card["facts"], duel.Verdict))
    return verdict.said("not run", f"nothing came back within {4 * seconds:g} s.")


def _why(output: dict[str, Any], who: str, seconds: float) -> str:
    """Why a cell gave an error."""
    if output["ename"] == TIMED_OUT:
        return f"{who} did not end within {seconds:g} s."
    if output["ename"] == PROCESS_ENDED:
        return f"{who} ended the process that ran it."
    return output["evalue"]


def _on_device(
    answer: Source,
    given: Source,
    inputs: Source,
    verdict: Verdict,
    tolerance: float | None,
    tell: Callable[[str], None],
) -> Verdict:
    """The same on a GPU, whose judge lives in this process, with the inputs."""
    from ..gpu.device_judge import Work, judge_on_device

    if verdict.device not in present():
        return verdict.said("not run", f"there is no {verdict.device} device here.")
    tell("racing")
    cell = "from autograder.judge.sources import load\nraced = load({!r}, {!r}, {!r})"
    sides = [Work([cell.format(str(one.path), one.name, one.text())], "raced") for one in (given, answer)]
    on = with_device(load(str(inputs.path), inputs.name))
    try:
        found = judge_on_device(
            *sides, on, threshold=verdict.at_least, device=verdict.device, tolerance=tolerance
        )
    except AnswerError as error:
        return verdict.said("wrong", str(error))
    except (duel.DuelError, ValueError, TypeError) as error:
        why = str(error).replace("'fast'", "the answer").replace("'slow'", "the given version")
        return verdict.said("not run", why)
    return verdict.timed(found)
