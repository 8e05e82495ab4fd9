"""Why a submission is graded, or graded again, in words that can stand after "because"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ..show import first_of

NOT_GRADED = "it is not graded yet"
NEWER = "something newer was handed in"
OTHER_FILES = "the submitted files changed"
OTHER_TIME = "the time in timestamp.txt changed"
OTHER_TESTS = "the tests or points changed"
FORCED = "--force was given"


def said_before(assignment: str, again: Mapping[str, str]) -> list[str]:
    """What the instructor reads before anybody is graded again; ``again``: student -> why."""
    sentences = []
    by_other_tests = [student for student, why in again.items() if why == OTHER_TESTS]
    if by_other_tests:
        sentences.append(
            f"The tests or points of {assignment} changed since submissions were graded "
            f"({len(by_other_tests)}): these are graded again; points given by hand stay."
        )
    replaced = [student for student, why in again.items() if why == OTHER_FILES]
    if replaced:
        sentences.append(
            f"Graded again, because the files in submitted/ are not those that were graded: "
            f"{first_of(replaced)}. Beside them is no new timestamp.txt, so they count as late as before."
        )
    return sentences


def said_after(again: Mapping[str, str], graded: Iterable[str]) -> list[str]:
    """How many of those ``graded`` in this run had a grade before, and why that was not enough."""
    counts = Counter(again[student] for student in graded if student in again)
    return [f"  {count} of them graded again, because {why}" for why, count in counts.items()]
