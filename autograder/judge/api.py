"""The door of the judge: two functions, inputs for them, and the ratio that is asked for."""

import math
import sys
from collections.abc import Callable

from .function_files import SourceError, Task, running, source_of
from .verdict import OWN_CODE, Verdict

SECONDS = 120.0


def judge(
    answer: Callable[..., object] | str,
    given: Callable[..., object] | str,
    inputs: Callable[..., object] | str,
    *,
    at_least: float,
    tolerance: float | None = None,
    device: str = "cpu",
    trusted: bool = False,
    seconds: float = SECONDS,
    tell: Callable[[str], None] = lambda doing: None,
) -> Verdict:
    """Whether ``answer`` gives what ``given`` gives, and is ``at_least`` times as fast; it takes 10 to 60 s.

    Each of the three is a function of a file, or a text like "path/to/file.py:function". ``inputs(generator,
    device)``, or ``inputs(generator)``, makes the arguments of a call, a tuple or a single one: tensors and
    arrays of any shape, numbers, texts, and collections of these. It is called anew for every call, with a
    ``torch.Generator`` on the CPU that all in them must depend on. ``at_least`` is a ratio of times: 2 is
    twice as fast, 1 no slower. ``tolerance`` is relative to a number's size + the root mean square of its
    tensor (by default 1e-4 in float32). ``device`` is "cpu" (one thread, CPU time) or "cuda". ``seconds`` is
    the limit for the answer's file, its check, and its race, each. ``tell`` hears what is done now.

    A function's file is run again in other processes, under another ``__name__``, as with multiprocessing: so
    a script calls this under ``if __name__ == "__main__":``. The answer's file may be hostile: it has a
    process of its own in a sandbox (Linux, bubblewrap), and what that says is not believed. The files of
    ``given`` and ``inputs`` are believed. ``trusted`` is for code of one's own: processes with this account's
    rights, on any system, each of which measures itself.

    Each of the words "faster", "as fast" and "slower" is wrong in at most 1 of 1,000 verdicts.

    Raises TypeError for a function that cannot be defined elsewhere, FileNotFoundError, ValueError for
    another argument that makes no sense, and RuntimeError where a script calls this while it is run again.
    Whatever else goes wrong is a Verdict: "wrong" or "not run", with a sentence.
    """
    if running:
        raise SourceError(f'{running[-1]} is run again: call judge under `if __name__ == "__main__":` only.')
    for name, value in (("at_least", at_least), ("seconds", seconds)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be above 0, not {value!r}.")
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'cpu' or 'cuda', not {device!r}.")
    new, old = source_of(answer, "the answer"), source_of(given, "the given version")
    task = Task(new, old, source_of(inputs, "inputs"), tolerance, seconds, tell)
    verdict = Verdict("not run", str(new), str(old), at_least, device)
    if not trusted and not sys.platform.startswith("linux"):
        return verdict.said("not run", f"the sandbox needs Linux. {OWN_CODE}")
    from ..judging.calls import AnswerError  # here, because it loads torch
    from ..measuring.clocks import present
    from ..measuring.duel import DuelError, TooNoisy

    if device not in present():
        return verdict.said("not run", f"there is no {device} device here.")
    if trusted:
        from .trusted import judge_trusted as run
    else:
        from .sandboxed import judge_sandboxed as run
    try:
        return run(task, verdict)
    except AnswerError as error:
        return verdict.said("wrong", str(error))
    except TooNoisy as error:
        return verdict.said("undecided", str(error))
    except (DuelError, SourceError) as error:
        return verdict.said("not run", str(error))
