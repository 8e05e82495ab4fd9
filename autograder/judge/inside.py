"""What runs in the sandbox, in the process that judges: the check and the race of two functions."""

import secrets
from dataclasses import asdict
from functools import partial

from ..judging.calls import Answer, AnswerError, describe_error
from ..judging.outcome import MIME
from ..judging.race import expect_right
from ..measuring.clocks import Function
from ..measuring.duel import DuelError, TooNoisy, fresh_inputs
from ..show import show
from .function_files import SourceError, check_inputs


def race(answer: Answer, given: Function, inputs: Function, at_least: float, tolerance: float | None) -> None:
    """Check and time the answer; show a word, and why or the facts, as data for ``sandboxed``."""
    make = partial(fresh_inputs, inputs, device="cpu")
    word, why, facts = "not run", None, None
    doing = "inputs"
    try:
        check_inputs(make, make)
        doing = "the given version"
        given(*make(secrets.randbits(62)))
        doing = "the answer"
        expect_right(answer, given, inputs, "cpu", tolerance, [])
        found = answer.duel(given, inputs, threshold=at_least, tolerance=tolerance)
        word, facts = found.word, asdict(found)
    except AnswerError as error:
        word, why = "wrong", f"the answer: {error}" if error.word == "error" else str(error)
    except TooNoisy as error:
        word, why = "undecided", str(error)
    except (DuelError, SourceError) as error:
        why = str(error)
    except Exception as error:
        why = f"{doing} raised {describe_error(error)}"
    show("", "", {MIME: {"outcome": word, "why": why, "facts": facts}})
