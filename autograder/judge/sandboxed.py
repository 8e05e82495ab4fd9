"""The judge for code that nobody trusts: three cells of a notebook that nobody sees, run in the sandbox."""

import secrets

import msgspec

from ..judging.outcome import MIME
from ..measuring import duel
from ..roles import PROCESS_ENDED, TIMED_OUT
from ..sandbox import PlannedCell, SandboxError, shared_sandbox
from ..sandbox.walls import proof
from ..sandbox.wire.messages import Role
from ..show import visible
from .function_files import Source, Task, load, with_device
from .verdict import OWN_CODE, Verdict

LOAD = "from autograder.judge.function_files import load, with_device\n"


def judge_sandboxed(task: Task, verdict: Verdict) -> Verdict:
    """Fill in the verdict (see ``api.judge``). Raises SourceError; on a GPU, DuelError and AnswerError."""
    task.tell("looking at the sandbox")
    if why := proof.why_not():
        return verdict.said("not run", f"{why} Nothing was run. {OWN_CODE}")
    if verdict.device != "cpu":
        task.tell("racing")
        return _on_device(task, verdict)
    answer, seconds = task.answer, task.seconds
    key, name = secrets.token_hex(8), visible(answer.path.name)
    given = f"given_{key} = {_loaded(task.given)}\ninputs_{key} = with_device({_loaded(task.inputs)})"
    test = f"race(answer_{key}, given_{key}, inputs_{key}, {verdict.at_least!r}, {task.tolerance!r})"
    sources: dict[Role, str] = {
        "given": f"{LOAD}{given}",
        "student": f"{LOAD}answer_{key} = load({name!r}, {answer.name!r})",
        "test": f"from autograder.judge.inside import race\n{test}",
    }
    cells = [
        PlannedCell(index, role, source, role, "race", [f"answer_{key}"])
        for index, (role, source) in enumerate(sources.items())
    ]
    try:
        executed = shared_sandbox(False).run_to_the_end(
            cells,
            assignment="race",
            files={name: answer.content},
            cell_seconds=seconds,
            notebook_seconds=4 * seconds,
            tell=lambda step: task.tell(step.doing),
        )
    except SandboxError as error:
        return verdict.said("not run", str(error))
    return _read(executed.outputs, verdict, seconds)


def _loaded(source: Source) -> str:
    return f"load({str(source.path)!r}, {source.name!r}, {source.text!r})"


def _read(outputs: dict[int, list[dict]], verdict: Verdict, seconds: float) -> Verdict:
    """The verdict that the cells showed."""
    for index, who in enumerate((verdict.given, verdict.answer, "the race")):
        for output in outputs.get(index, []):
            if output["output_type"] == "error":
                ends = {TIMED_OUT: f"did not end within {seconds:g} s.", PROCESS_ENDED: "ended its process."}
                end = ends.get(output["ename"])
                said = f"{who} {end}" if end else output["evalue"]
                if who == verdict.answer and not said.startswith(who.rpartition(":")[0]):
                    said = f"{who} raised {said}"  # its process can say anything
                return verdict.said("not run", said)
            if index == 2 and (card := output.get("data", {}).get(MIME)):
                if not card["facts"]:
                    return verdict.said(card["outcome"], card["why"])
                return verdict.timed(msgspec.convert(card["facts"], duel.Verdict))
    return verdict.said("not run", f"nothing came back within {4 * seconds:g} s.")


def _on_device(task: Task, verdict: Verdict) -> Verdict:
    """The same on a GPU, whose judge lives in this process, with the inputs."""
    from ..gpu.device_judge import Work, isolation, judge_on_device

    device = verdict.device
    if not isolation(device):
        why = f"The processes for {device} get no walls of bubblewrap's here. Nothing was run."
        return verdict.said("not run", f"{why} {OWN_CODE}")
    given, answer = (Work([f"{LOAD}raced = {_loaded(one)}"], "raced") for one in (task.given, task.answer))
    on = with_device(load(str(task.inputs.path), task.inputs.name))
    try:
        found = judge_on_device(
            given, answer, on, threshold=verdict.at_least, device=device, tolerance=task.tolerance
        )
    except (ValueError, TypeError) as error:
        return verdict.said("not run", str(error))
    return verdict.timed(found)
