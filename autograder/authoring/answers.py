"""Answers of known worth: right and slow, wrong and fast, none at all, and the points that each must get.

``tests/answers/NN_topic.py`` holds them, a cell each, in the form that CONTRIBUTING.md explains. Two kinds
need no entry: ``solution`` is the source's own, and ``unattempted`` is what students start from.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from math import log
from pathlib import Path

from nbformat import NotebookNode

from ..roles import exercise_of, is_test, solution_cells
from .builder import build

_NUMBER = r"\d+(?:\.\d+)?"
HEADER = re.compile(rf"# %% (\w+) (\w+)((?: \w+={_NUMBER}(?:\.\.{_NUMBER})?)*)")
# An answer "as slow as given" may come out a little faster by luck: so much of a test's points is nothing.
NOTHING = 0.1
# How fast one right way is beside another differs from machine to machine by up to this factor.
MACHINES = 2


@dataclass(frozen=True)
class Worth:
    """The points that a test must give: from ``low`` to ``high``."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"

    def agrees(self, points: float | None, most: float, asked: float | None = None) -> bool:
        """Whether a test that can give ``most`` points gave what it should.

        ``asked`` is the ratio that a race asked for, where it timed the answer and where another machine than
        the author's may find it faster or slower beside the given version.
        """
        if points is None:
            return False
        other = most * log(MACHINES) / log(asked) if asked else 0
        least, highest = self.low - other, self.high + other
        return least - 0.005 <= points <= max(highest + 0.005, NOTHING * most * (self.high == 0))


@dataclass(frozen=True)
class KnownAnswer:
    """One answer to one exercise: its code (None: as released), and what each test cell must give for it."""

    exercise: str
    kind: str
    code: str | None
    points: Mapping[str, Worth]


Answers = dict[str, dict[str, KnownAnswer]]


def read_answers(path: Path) -> list[KnownAnswer]:
    """The answers in one file, but for cells with plain headers. Raises ValueError for an unreadable one."""
    answers = []
    for cell in re.split(r"(?m)^(?=# %%)", path.read_text(encoding="utf-8"))[1:]:
        header, _, code = cell.partition("\n")
        if header.rstrip() == "# %%" or header.startswith("# %% ["):
            continue
        if not (words := HEADER.fullmatch(header.rstrip())):
            raise ValueError(f"{path}: expected '# %% exercise kind test=points …', but found {header!r}.")
        exercise, kind, rest = words.groups()
        points = {
            f"{exercise}_{test}": Worth(float(low), float(high or low))
            for test, low, high in re.findall(rf"(\w+)=({_NUMBER})(?:\.\.({_NUMBER}))?", rest)
        }
        answers.append(KnownAnswer(exercise, kind, code.strip(), points))
    return answers


def answers_to(assignment: str, root: Path = Path()) -> Answers:
    """All answers to an assignment, by exercise and kind; ``root`` is the folder of the course.

    Raises ValueError where the answers and the assignment's source disagree on exercises or test cells.
    """
    source = build(root / "solutions" / assignment / f"{assignment}.py")
    full, solutions = points_of(source), solution_cells(source)
    answers: Answers = {}
    for exercise, cell in solutions.items():
        tests = [test for test in full if exercise_of(test, solutions) == exercise]
        most: Mapping[str, Worth] = {test: Worth(full[test], full[test]) for test in tests}
        answers[exercise] = {
            "solution": KnownAnswer(exercise, "solution", cell.source, most),
            "unattempted": KnownAnswer(exercise, "unattempted", None, dict.fromkeys(tests, Worth(0, 0))),
        }
    path = root / "tests" / "answers" / f"{assignment}.py"
    for answer in read_answers(path):
        if answer.exercise not in answers:
            raise ValueError(f"{path}: no exercise is called {answer.exercise!r}, only {list(answers)}.")
        most = answers[answer.exercise]["solution"].points
        what = f"{path}: {answer.exercise} {answer.kind}"
        if answer.points.keys() != most.keys():
            raise ValueError(f"{what} gives points for {[*answer.points]}, not for {[*most]}.")
        if answer.kind in answers[answer.exercise]:
            raise ValueError(f"{what} is there twice.")
        answers[answer.exercise][answer.kind] = answer
    return answers


def points_of(notebook: NotebookNode) -> dict[str, float]:
    """The points that each test cell can give, by grade_id."""
    tests = (cell.metadata.nbgrader for cell in notebook.cells if is_test(cell))
    return {test.grade_id: test.points for test in tests}


def submission(release: NotebookNode, answers: Answers, kinds: Mapping[str, str]) -> NotebookNode:
    """The released notebook with an answer of the given kind in each exercise."""
    notebook = deepcopy(release)
    for exercise, cell in solution_cells(notebook).items():
        code = answers[exercise][kinds[exercise]].code
        cell.source = cell.source if code is None else code
    return notebook


def expected_points(answers: Answers, kinds: Mapping[str, str]) -> dict[str, Worth]:
    """The points that each test cell must give for such a submission."""
    chosen = (answers[exercise][kind].points for exercise, kind in kinds.items())
    return {test: points for of_one in chosen for test, points in of_one.items()}
