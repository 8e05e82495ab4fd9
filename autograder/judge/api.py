"""The door of the judge: two functions, inputs for them, and the ratio that is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable

from .sources import NO_GUARD, Source, SourceError, running_again, source_of
from .verdict import Verdict, check_ratio

SECONDS = 120.0
OWN_CODE = "For code of your own, the judge does without a sandbox: trusted=True, or --trusted."


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
    """Whether ``answer`` gives what ``given`` gives, and is ``at_least`` times as fast. Takes 10 to 60 s.

    Each of the three is a function of a file, or a text like "path/to/file.py:function". ``inputs(generator,
    device)``, or ``inputs(generator)``, makes the arguments of a call, a tuple or a single one: tensors, arrays,
    numbers, texts, and lists, tuples, sets and dicts of these. It is called anew for every call, with a
    ``torch.Generator`` on the CPU, and must depend on that alone. ``at_least`` is a ratio of times: 2 is twice as
    fast, 1 no slower. ``tolerance`` is relative: numbers may differ by that much of (their size + the root mean
    square of the tensor); by default 1e-4 in float32, 1e-9 in float64. ``device`` is "cpu" (one thread, CPU
    time) or "cuda".

    The file of a function is run again in other processes, under another ``__name__``, as with multiprocessing: a
    script calls this under ``if __name__ == "__main__":``. The answer's file may be hostile: it runs in a sandbox,
    in a process of its own, and what that process says is not believed. The files of ``given`` and ``inputs`` are
    believed; where they are the answer's file, so is the answer. The sandbox needs Linux and bubblewrap. With
    ``trusted``, all of it runs in processes with this account's rights, on any system, and measures itself.

    ``seconds`` is the limit for the answer's file, for its check, and for its race, each. ``tell`` hears what is
    being done. In at most one verdict in 1,000 each is the word "faster", "as fast" or "slower" wrong. An
    undecided race is run a second time before it is said to be undecided.

    Raises TypeError for a function that cannot be defined elsewhere, ValueError for a ratio, a device or a time
    that is none, FileNotFoundError, and RuntimeError where a script calls this while it is run again. Whatever
    else goes wrong is a Verdict: "wrong" or "not run", with a sentence.
    """
    if file := running_again():
        raise SourceError(NO_GUARD.format(file=file))
    check_ratio(at_least)
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device is 'cpu' or 'cuda', not {device!r}.")
    if not seconds > 0:
        raise ValueError(f"seconds is a time above 0, not {seconds!r}.")
    sources = source_of(answer, "the answer"), source_of(given, "the given version"), source_of(inputs, "inputs")
    verdict = Verdict("not run", str(sources[0]), str(sources[1]), at_least, device)
    try:
        if trusted:
            from .trusted import judge_trusted as run
        elif sys.platform.startswith("linux"):
            from .sandboxed import judge_sandboxed as run
        else:
            return verdict.said("not run", f"the sandbox needs Linux. {OWN_CODE}")
        return run(*sources, verdict=verdict, tolerance=tolerance, seconds=seconds, tell=tell)
    except SourceError as error:
        return verdict.said("not run", str(error))
