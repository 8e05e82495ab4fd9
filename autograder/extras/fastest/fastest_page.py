"""A page for the class after the deadline: how fast the answers to each race are, and the fastest of those
whose authors said that they may be shown. It names nobody; ``fastest.html.j2`` says how it looks.
"""

import ast
import re
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

from ...class_grading.class_report import race_bars
from ...class_grading.course import Course
from ...class_grading.gradebook import GradingError
from ...class_grading.html_page import render
from ...class_grading.results import ClassResults, Lap, read_graded
from ...nbgrader_plugin.entries import TABLE, read_table
from ...roles import solution_cells

BEST = 3
# A student writes it into the solution's cell.
MAY_BE_SHOWN = re.compile(r"(?im)^\s*#\s*you may show this\b")


def page(course: Course) -> str:
    """The page as HTML. Raises GradingError where there is nothing to show, or not yet."""
    results = read_graded(course)
    if (due := course.due) is None:
        raise GradingError(f"{course.assignment} has no due date yet. Set it in the formgrader.")
    last = due + timedelta(days=read_table(course.root / TABLE).longest_extension(course.assignment))
    if last > datetime.now(timezone.utc).replace(tzinfo=None):  # somebody may still hand in at no cost
        extended = f", for somebody on {last:%Y-%m-%d %H:%M} UTC" if last > due else ""
        raise GradingError(f"{course.assignment} is due on {due:%Y-%m-%d %H:%M} UTC{extended}. Wait for it.")
    cells = {
        (graded.student, name): cell.source
        for graded in results.graded
        for notebook in course.autograded_notebooks(graded.student)
        for name, cell in solution_cells(notebook).items()
    }
    races = races_of(results, cells)
    if not races:
        raise GradingError(f"No race of {course.assignment} was timed.")
    return render(
        Path(__file__).with_name("fastest.html.j2"),
        results=results,
        races=races,
        most=BEST,
        race_bars=race_bars,
        made_of=made_of,
    )


def races_of(
    results: ClassResults, answers: dict[tuple[str, str], str]
) -> dict[str, tuple[list[Lap], dict[str, Lap]]]:
    """The races that timed anybody, with what they measured, the fastest first: for all, and for each code
    that may be shown. ``answers``: student and exercise -> source of the cell.
    """
    found = {}
    for exercise, name in [(one, name) for one, names in results.tests.items() for name in names]:
        laps = [
            (graded.student, lap)
            for graded in results.graded
            for test in graded.tests
            if test.name == name and test.outcome in ("passed", "failed")
            for lap in test.laps
            if lap.device == "cpu"
        ]
        laps.sort(key=lambda pair: -pair[1].ratio)
        different: dict[str, Lap] = {}  # the same code handed in twice says nothing new
        for student, lap in laps:
            if code := may_be_shown(answers.get((student, exercise), "")):
                different.setdefault(code, lap)
        if laps:
            found[name] = [lap for _, lap in laps], different
    return found


def may_be_shown(source: str) -> str:
    """The code of an answer without remarks and docstrings, if its author allows it; otherwise nothing.

    Nor of one that Python reads and does not write again: numbers of 5,000 digits, sums of 5,000 parts.
    """
    if not MAY_BE_SHOWN.search(source):
        return ""
    is_remark = lambda part: isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
    try:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.Module)):
                node.body = [part for part in node.body if not is_remark(part)] or [ast.Pass()]
        ast.parse(code := ast.unparse(tree))
        return code
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


def made_of(code: str) -> tuple[list[str], int]:
    """What an answer calls, the most often called first, and how many loops it has."""
    nodes = list(ast.walk(ast.parse(code)))
    own = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    names = (getattr(one, "attr", "") or getattr(one, "id", "") for one in called)
    calls = Counter(name for name in names if name and name not in own)
    loops = sum(isinstance(node, (ast.For, ast.While, ast.comprehension)) for node in nodes)
    return [name for name, _ in calls.most_common(8)], loops
