"""A page about answers that look alike: a hint for a person, who then reads them, and never a penalty.

copydetect compares them, by runs of characters that two answers share once names, remarks and blanks are
taken out (winnowing: Schleimer, Wilkerson and Aiken, 2003).
"""

import io
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

from copydetect import CodeFingerprint, compare_files
from copydetect.utils import get_token_coverage

from ...class_grading.course import Course, SubmissionError
from ...class_grading.html_page import render
from ...nbgrader_plugin.patches import remove_hidden_tests
from ...nbgrader_plugin.reading import extra_files
from ...nbgrader_plugin.restore import original_cells
from ...nbgrader_plugin.submissions import problem_of
from ...roles import parsed, solution_cells
from ...sandbox.submissions.plan import modules
from ...show import visible

MODULES = "modules of their own"
RUN = 30  # characters that must be the same, with one for each name
LONGEST = 10_000  # characters of an answer: colouring, which comes first, takes hours for some long texts
LEAST = 150  # characters that two students' answers to the same exercises must have to be compared
ALIKE = 0.5  # the share of these that a listed pair has in common
PART = 0.25  # the share from which on an exercise of a listed pair is shown
MOST_PAIRS = 40
# What more of the class than this has in common is no sign, and more students than that.
COMMON, FEW = 0.25, 5
IMPORT = re.compile(r"(?m)^[ \t]*(?:import|from)\b.*$")

Answers = Mapping[str, Mapping[str, str]]  # student -> exercise -> code
Fingerprints = Mapping[str, CodeFingerprint]  # exercise -> those of an answer


@dataclass(frozen=True)
class AlikePart:
    """An exercise of a pair: the share in common, and both answers with the slices that are in common."""

    exercise: str
    share: float
    sides: list[tuple[str, Any]]


@dataclass(frozen=True)
class AlikePair:
    """Two students, the share that their answers have in common, and the exercises where that is much."""

    students: tuple[str, str]
    share: float
    parts: list[AlikePart]


def read_handed_in(course: Course) -> tuple[Answers, dict[str, str], list[list[str]]]:
    """Everybody's answers and modules; what was given to all, cell -> code; and what cannot be compared: the
    student, where, why. Raises GradingError as ``Course.submissions`` does.
    """
    submissions = course.submissions()
    answers: dict[str, dict[str, str]] = {}
    left_out = [[student, "", why] for student, why in course.grader.refused.items()]
    for submission in submissions:
        student = submission.student
        try:
            notebooks = [prepared.notebook for prepared in course.read(submission)]
        except SubmissionError as error:
            left_out.append([student, "", str(error)])
            continue
        cells = [(name, cell) for notebook in notebooks for name, cell in solution_cells(notebook).items()]
        own = {name: cell.source for name, cell in cells if cell.cell_type == "code"}
        files = modules(extra_files(submission.folder))
        own[MODULES] = "\n".join(files[name] for name in sorted(files))
        answers[student] = {name: code for name, code in own.items() if len(code) <= LONGEST}
        too_long = own.keys() - answers[student].keys()
        left_out += [[student, name, f"longer than {LONGEST:,} characters"] for name in sorted(too_long)]
        left_out += [[student, "", why] for why in map(problem_of, notebooks) if why]
    given = {}
    with course.opened() as gradebook:
        for kept in gradebook.find_assignment(course.assignment).notebooks:
            for name, cell in original_cells(kept).items():
                remove_hidden_tests(cell)
                given[name] = cell.source if cell.cell_type == "code" else ""
    return answers, given, left_out


def look_alikes(answers: Answers, given: Mapping[str, str]) -> tuple[list[AlikePair], int]:
    """The pairs of students whose answers look alike, the most first, and how many were compared.

    ``given``: cell -> code, as all students got it.
    """
    prints = fingerprints(answers, given)
    found = (_pair((a, b), prints[a], prints[b]) for a, b in combinations(sorted(prints), 2))
    compared = [pair for pair in found if pair]
    alike = [pair for pair in compared if pair.share >= ALIKE]
    return sorted(alike, key=lambda pair: -pair.share), len(compared)


def _pair(students: tuple[str, str], one: Fingerprints, other: Fingerprints) -> AlikePair | None:
    """What two students have in common; nothing where that is too little to say anything."""
    both = [name for name in one if name in other]
    # The smaller of the two: little is in common by chance.
    if sum(min(one[name].token_coverage, other[name].token_coverage) for name in both) < LEAST:
        return None
    in_common = of_all = 0.0
    parts = []
    for name in both:
        sides = one[name], other[name]
        sizes = [side.token_coverage for side in sides]
        _, shares, slices = compare_files(*sides)
        same = sum(share * size for share, size in zip(shares, sizes, strict=True))
        in_common, of_all = in_common + same, of_all + sum(sizes)
        if same >= PART * sum(sizes) > 0:
            answers = [(side.raw_code, of) for side, of in zip(sides, slices, strict=True)]
            parts.append(AlikePart(name, float(same / sum(sizes)), answers))
    return AlikePair(students, float(in_common / of_all), parts)


def fingerprints(answers: Answers, given: Mapping[str, str]) -> Mapping[str, Fingerprints]:
    """Student -> exercise -> the fingerprints of an answer, without those of what was given to all, and of
    what many have in common. An answer that is still the one that was given has none.
    """
    found = {
        student: {
            name: fingerprint(code, as_python=parsed(code) is not None)
            for name, code in own.items()
            if code.strip() and code.strip() != given.get(name, "").strip()
        }
        for student, own in answers.items()
    }
    of_given = (fingerprint(code, as_python=either) for code in given.values() for either in (True, False))
    known = {one for prints in of_given for one in prints.hashes}
    most = max(FEW, COMMON * len(answers))
    for name in {name for own in found.values() for name in own}:
        answered = [own[name] for own in found.values() if name in own]
        counts = Counter(one for prints in answered for one in prints.hashes)
        common = known | {one for one, students in counts.items() if students > most}
        for prints in answered:
            # copydetect's own way to take fingerprints away takes some that an answer has twice, too.
            prints.hashes = prints.hashes.difference(common)
            prints.hash_idx = {one: places for one, places in prints.hash_idx.items() if one in prints.hashes}
            prints.token_coverage = get_token_coverage(prints.hash_idx, RUN, len(prints.filtered_code))
    return found


def fingerprint(code: str, *, as_python: bool) -> CodeFingerprint:
    """The fingerprints of a text: of what is no Python, letter by letter, or all words would be alike."""
    # As the colouring sees it, or marks would be in other places.
    code = code.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff").strip("\n") + "\n"
    without_imports = IMPORT.sub(lambda line: " " * len(line[0]), code)
    found = CodeFingerprint("answer.py", RUN, 1, filter=as_python, fp=io.StringIO(without_imports))
    found.raw_code = code
    return found


def pieces(code: str, slices: Any) -> list[tuple[str, bool]]:
    """A text in pieces, each with whether it is in a slice; what does not show is escaped.

    ``slices``: an array of copydetect's, in which the starts are the first row and the ends the second.
    """
    marked = {place for start, end in slices.T for place in range(int(start), int(end))}
    marked -= {place for line in IMPORT.finditer(code) for place in range(*line.span())}
    places = groupby(range(len(code)), marked.__contains__)
    return [(visible("".join(code[place] for place in run)), common) for common, run in places]


def page(course: Course) -> str:
    """The page as HTML. Raises GradingError as ``Course.submissions`` does."""
    answers, given, left_out = read_handed_in(course)
    pairs, compared = look_alikes(answers, given)
    return render(
        Path(__file__).with_name("similar.html.j2"),
        assignment=course.assignment,
        submissions=len(answers),
        compared=compared,
        pairs=pairs,
        pieces=pieces,
        most=MOST_PAIRS,
        left_out=left_out,
        limits={"alike": ALIKE, "common": COMMON, "few": FEW},
    )
