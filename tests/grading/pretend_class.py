"""A class of students with the assignment ``traps``: what each hands in, and what grading gave."""

import json
import re
from copy import deepcopy
from html import unescape
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from nbgrader.apps import NbGraderAPI
from traitlets.config import PyFileConfigLoader

from autograder.authoring.scratch_course import ScratchCourse
from autograder.roles import nbgrader_data

Content = NotebookNode | bytes | None  # of the file that is handed in
TIME_LIMIT = 4  # seconds for a cell
RIGHT = {
    "double": "def double(x):\n    return 2 * x",
    "square": "def square(x):\n    return x * x",
    "negate": "def negate(x):\n    return -x",
}
# The points of their tests.
FULL = {f"{name}_{test}": points for name in RIGHT for test, points in (("check", 1), ("hidden", 2))}


def answered(release: NotebookNode, **answers: str) -> NotebookNode:
    """A submission: right answers, except for those given."""
    notebook = deepcopy(release)
    for name, code in {**RIGHT, **answers}.items():
        find(notebook, name).source = code
    return notebook


def find(notebook: NotebookNode, grade_id: str) -> NotebookNode:
    return next(cell for cell in notebook.cells if nbgrader_data(cell).get("grade_id") == grade_id)


def delete(notebook: NotebookNode, *grade_ids: str) -> None:
    notebook.cells = [cell for cell in notebook.cells if nbgrader_data(cell).get("grade_id") not in grade_ids]


def submissions(release: NotebookNode) -> dict[str, Content]:
    # A loop that can be interrupted, and one that cannot.
    stubborn = "def square(x):\n    while True:\n        try:\n            while True: pass\n"
    stubborn += "        except BaseException:\n            pass\n"
    loops = answered(release, double="def double(x):\n    while True:\n        pass", square=stubborn)
    # A syntax error, a renamed function, and no function at all.
    wrong = {"double": "def double(x)\n    return 2 * x", "square": "def my_square(x):\n    return x * x"}
    mistakes = answered(release, **wrong)
    delete(mistakes, "negate")
    # Answers that try to show the hidden tests: a warning quotes its caller, a cell prints the history.
    warns = "import warnings\ndef double(x):\n    warnings.warn('look', stacklevel=3)\n    return 2 * x"
    curious = answered(release, double=warns, square="def square(x):\n    raise SystemExit('out')")
    curious.cells.append(new_code_cell("print('\\n'.join(In))\nprint('end of history')"))
    return {
        "right": answered(release),
        "unattempted": release,
        "loops": loops,
        "mistakes": mistakes,
        "curious": curious,
        "cut_off": json.dumps(answered(release))[:2000].encode(),
    }


class Graded:
    def __init__(self, course: ScratchCourse, assignment: str) -> None:
        self.course, self.assignment = course, assignment
        self.points = course.points(assignment)

    def page(self, student: str) -> str:
        """The feedback page as a student reads it: its visible text, without line breaks."""
        body = re.sub(r"(?s)<(style|script).*?</\1>", "", self.html(student))
        return " ".join(unescape(re.sub(r"<[^>]*>", "", body)).split())

    def html(self, student: str) -> str:
        return self.course.page(student, self.assignment).read_text()

    def submitted(self, student: str) -> Path:
        return self.course.folder / "submitted" / student / self.assignment / f"{self.assignment}.ipynb"

    def autograded(self, student: str) -> NotebookNode:
        path = self.course.folder / "autograded" / student / self.assignment / f"{self.assignment}.ipynb"
        return nbformat.read(path, as_version=4)


def hand_in(course: ScratchCourse, assignment: str, student: str, content: Content) -> Path:
    folder = course.folder / "submitted" / student / assignment
    folder.mkdir(parents=True)
    path = folder / f"{assignment}.ipynb"
    if isinstance(content, NotebookNode):
        # Not nbformat.write: it refuses some of what students hand in.
        content = json.dumps(content).encode()
    if content is not None:
        path.write_bytes(content)
    return path


def api(course: ScratchCourse) -> NbGraderAPI:
    """nbgrader as the formgrader uses it."""
    config = PyFileConfigLoader("nbgrader_config.py", path=str(course.folder)).load_config()
    return NbGraderAPI(config=config)
