"""Grades one submission in a container of Gradescope's, and says what came out in Gradescope's own format.

``archive.py`` makes the archive that calls this. What Gradescope publishes about both, at
https://gradescope-autograders.readthedocs.io (pages specs, tech, best_practices and troubleshooting), as read
in November 2026:

- Each submission has a container of its own. What was handed in is in /autograder/submission.
- At the end, /autograder/results/results.json must be there, also where grading failed, with a ``score`` or
  ``tests``. A visibility is "hidden", "after_due_date", "after_published" or "visible"; in an output of the
  format "text" nothing is taken for HTML.
- One hidden test keeps students from seeing their sum. So what is for instructors alone is printed: they see
  it, and students do not where ``stdout_visibility`` is "hidden".
- A student's code should run with as few rights as possible, and not as root.
"""

import json
import os
import shutil
import sys
import tempfile
import traceback
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

from ...class_grading.class_report import machine
from ...class_grading.course import SETTINGS, Course
from ...class_grading.engine import grade
from ...class_grading.gradebook import GradingError
from ...class_grading.pool import LocalPool, PoolError
from ...class_grading.results import ClassResults, read_results
from ...files import write_whole
from ...judging.outcome import MIME
from ...nbgrader_plugin.collect import copy_plain_files
from ...nbgrader_plugin.pages import HideTests
from ...nbgrader_plugin.points import as_text
from ...roles import is_test, nbgrader_data
from ...sandbox import Sandbox

GRADEBOOK = "gradebook.db"
STUDENT = "student"
MOST_BYTES = 10**9  # of what is handed in
NOBODY = 65534  # the user with this number owns no files
UNFINISHED = "Grading ended too early: there was too little memory or time. Please tell your instructor."
FAILED = "This submission could not be graded. That is not your fault; please tell your instructor."
REFUSED = "Not graded, as no sandbox starts here. That is not your fault; please tell your instructor."
HOW_TO_ALLOW = "ARGS=--without-sandbox grades all the same. What that means: docs/instructors.md, Gradescope."
FOR_STUDENTS = {"output_format": "text", "visibility": "visible", "stdout_visibility": "hidden"}
NOT_FINAL = "These points are not final: your instructor decides this test."


def write_results(root: Path, assignment: str, without_sandbox: bool) -> None:
    """Grade what lies in ROOT/submission, and write ROOT/results/results.json, whatever happens."""
    target = root / "results" / "results.json"
    write_whole(target, json.dumps(not_graded(UNFINISHED), indent=1))
    try:
        found = grade_submission(root, assignment, without_sandbox)
    except (GradingError, PoolError) as error:
        refused = isinstance(error, PoolError)
        print(f"error: {error}\n{HOW_TO_ALLOW if refused else ''}")
        found = not_graded(REFUSED if refused else FAILED)
    except Exception:  # whatever it is, its author must read a sentence
        traceback.print_exc(file=sys.stdout)
        found = not_graded(FAILED)
    write_whole(target, json.dumps(found, indent=1))


def not_graded(sentence: str) -> dict[str, Any]:
    return {"score": 0, "output": sentence, **FOR_STUDENTS}


def grade_submission(root: Path, assignment: str, without_sandbox: bool) -> dict[str, Any]:
    """What ``make grade`` would find, in Gradescope's format; what the instructor should know is printed.

    Raises PoolError where the sandbox does not hold, unless that is allowed; GradingError.
    """
    start = monotonic()
    Path(root, "source", GRADEBOOK).chmod(0o600)  # it has the hidden tests
    account = None if os.geteuid() else NOBODY
    sandbox = Sandbox(unconfined=without_sandbox, account=account)
    with tempfile.TemporaryDirectory(prefix="course-") as folder, closing(LocalPool([sandbox])) as pool:
        for name in (SETTINGS, GRADEBOOK):
            shutil.copyfile(root / "source" / name, Path(folder, name))
        target = Path(folder, "submitted", STUDENT, assignment)
        target.parent.mkdir(parents=True)
        if (root / "submission").is_dir():
            copy_plain_files(root / "submission", target, MOST_BYTES)
        target.mkdir(exist_ok=True)
        os.chdir(folder)
        with Course(assignment, f"sqlite:///{Path(folder, GRADEBOOK)}") as course, course.locked():
            grade(course, connect=lambda _: pool)
            results = read_results(course)
            if not results.graded:
                raise GradingError(results.missing.get(STUDENT, "nobody was graded"))
            print(*remarks(results), sep="\n")
            return in_their_format(course, results, monotonic() - start)


def in_their_format(course: Course, results: ClassResults, seconds: float) -> dict[str, Any]:
    """The grade of the one student, with nothing that the feedback page does not show."""
    (graded,) = results.graded
    shown = cards(course)
    tests = [
        {
            "name": test.name,
            "number": f"{place}.{number}",
            "tags": [exercise],
            "score": round(test.points, 4),
            "max_score": results.most[test.name],
            "output": shown.get(test.name, "") + (f"\n{NOT_FINAL}" if test.outcome == "undecided" else ""),
            "output_format": "text",
            "visibility": "visible",
        }
        for place, (exercise, names) in enumerate(results.tests.items(), 1)
        for number, test in enumerate((one for one in graded.tests if one.name in names), 1)
    ]
    return {
        "tests": tests,
        "output": "\n".join(f"{why} So every exercise counts 0 points." for (why,) in graded.unreadable),
        "execution_time": round(seconds),
        **FOR_STUDENTS,
        "extra_data": {
            **{kind: getattr(graded, kind) for kind in ("events", "noise", "sandboxed")},
            "undecided": [name for name, _ in graded.undecided],
        },
    }


def cards(course: Course) -> dict[str, str]:
    """The cards of each test as text, as on the feedback page."""
    found: dict[str, str] = {}
    for notebook in course.autograded_notebooks(STUDENT):
        HideTests().preprocess(notebook, {})
        for cell in filter(is_test, notebook.cells):
            shown = (output.data for output in cell.outputs if MIME in output.get("data", {}))
            texts = [as_text(data.get("text/plain", "")) for data in shown]
            found[nbgrader_data(cell)["grade_id"]] = "\n".join(texts)
    return found


def remarks(results: ClassResults) -> list[str]:
    """Sentences for the instructor, which students do not see."""
    said = machine(results)
    if undecided := ", ".join(name for _, name, _ in results.rows("undecided")):
        advice = "Have this submission graded again, or enter the points."
        said.append(f"Undecided: {undecided}. The points are those shown so far, or none. {advice}")
    return said + [f"Suspicious: {where}: {what}" for _, where, what in results.rows("suspicious")]
