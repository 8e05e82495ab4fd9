"""Turns what a test cell displayed into points, so that nothing counts in a student's favour by mistake.

nbgrader's own rule for a test cell: any error and any text on stderr is 0 points, a number is partial credit,
and anything else is full points. So a warning costs everything and a test that says nothing gives everything.
"""

import logging
import re
from datetime import datetime, timezone
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.api import Assignment, BaseCell, Comment, Grade, Gradebook, SubmittedNotebook
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution, is_task

from ..judging.outcome import MIME, Outcome
from ..roles import NOT_RUN, PROCESS_ENDED, TIMED_OUT, calls_race, exercise_of, is_test, solution_cells
from .submissions import problem_of


class ReadVerdicts(NbGraderPreprocessor):
    """Leaves in each test cell one number, which nbgrader reads as its points, and a card that says why.

    The number is what ``check`` or ``race`` returned, if it is one from 0 to the cell's points; 0 otherwise.
    A race counts 0, too, unless all checks of its exercise, wherever they are and whenever they ran, found
    the answer right. Text on stderr stays, as ordinary output.
    """

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        answers = solution_cells(nb)
        exercises = nb.metadata.get("autograder", {}).get("names", answers)
        wrong: dict[str, str] = {}  # exercise → a test of it that did not find the answer right
        for cell in filter(is_test, nb.cells):
            data = cell.metadata.nbgrader
            for output in cell.outputs:
                if output.output_type == "stream":
                    output.name = "stdout"
            results = [output for output in cell.outputs if output.output_type == "execute_result"]
            cell.outputs = [output for output in cell.outputs if output not in results]
            exercise = exercise_of(data.grade_id, exercises) or data.grade_id
            if problem_of(nb):
                message = "There was no notebook to test. The top of this page says why."
                self.count_nothing(cell, "not attempted", message)
            elif message := objection(cell, results, answers.get(exercise)):
                self.count_nothing(cell, "error", message)
            else:
                cell.outputs.append(results[-1])
            if not found_right(cell):
                wrong.setdefault(exercise, data.grade_id)
        for cell in filter(is_test, nb.cells):
            test = wrong.get(exercise_of(cell.metadata.nbgrader.grade_id, exercises) or "")
            if test and _points(cell) > 0 and any("laps" in data for data in outcomes(cell)):  # it is a race
                message = f"This counts 0, because the test `{test}` did not find the answer right."
                cell.outputs = [output for output in cell.outputs[:-1] if MIME not in output.get("data", {})]
                self.count_nothing(cell, "failed", f"{message} Mend that first.")
        return nb, resources

    def count_nothing(self, cell: NotebookNode, outcome: str, message: str) -> None:
        """Give a test cell 0 points, with a card before its outputs that says why."""
        data = cell.metadata.nbgrader
        self.log.debug("Cell %s counts 0: %s", data.grade_id, message)
        nothing = new_output("execute_result", {"text/plain": "0.0"}, execution_count=cell.execution_count)
        cell.outputs = [card(outcome, message, data.points), *cell.outputs, nothing]


def objection(cell: NotebookNode, results: list[NotebookNode], answer: NotebookNode | None) -> str:
    """Why a test cell counts 0; nothing, where it does not."""
    errors = [output for output in cell.outputs if output.output_type == "error"]
    if errors:
        return error_message(errors[-1], answer)
    if not results:
        return "The test gave no result, so it counts 0. Please tell your instructor."
    text = as_text(results[-1].data.get("text/plain", ""))
    shown = f"The test returned `{text[:60]}`"
    try:
        points = float(text)
    except ValueError:
        return f"{shown}, which is not a number of points, so it counts 0."
    if not 0 <= points <= cell.metadata.nbgrader.points:  # NaN fails this, too
        return f"{shown}, but it can give from 0 to {cell.metadata.nbgrader.points:g} points."
    for said in [data.get("points") for data in outcomes(cell)][-1:]:
        if not (isinstance(said, (int, float)) and abs(said - points) <= 0.001):
            return f"{shown}, but its card says {said} points, so it counts 0."
    return ""


class SaveVerdicts(NbGraderPreprocessor):
    """Stands for nbgrader's SaveAutoGrades; also asks the instructor to look at what noise left undecided.

    It marks the notebook as finished: one without this mark is graded again.
    """

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        names = resources["nbgrader"]
        with Gradebook(names["db_url"]) as opened:
            found = opened.find_submission_notebook(names["notebook"], names["assignment"], names["student"])
            # One question for all cells: nbgrader asks for each cell, and commits after each.
            grades, comments = (by_cell(opened, kind, found) for kind in (Grade, Comment))
            for cell in nb.cells:
                if is_grade(cell):
                    save_grade(cell, grades[cell.metadata.nbgrader.grade_id], self.log)
                if is_solution(cell) or is_task(cell):
                    data = cell.metadata.nbgrader
                    unchanged = data.get("checksum") == compute_checksum(cell) and not is_task(cell)
                    comments[data.grade_id].auto_comment = "No response." if unchanged else None
            opened.db.commit()
        finished = datetime.now(timezone.utc).isoformat(timespec="microseconds")
        nb.metadata.setdefault("autograder", NotebookNode())["finished"] = finished
        return nb, resources


def save_grade(cell: NotebookNode, grade: Grade, log: logging.Logger) -> None:
    """Enter the points of a cell; what was given by hand stays, and is to be looked at again."""
    grade.auto_score, _ = determine_grade(cell, log)
    undecided = is_test(cell) and any(card.get("outcome") == "undecided" for card in outcomes(cell))
    by_hand = grade.manual_score is not None or grade.auto_score is None
    grade.needs_manual_grade = by_hand or undecided


def by_cell(gradebook: Gradebook, kind: type[Any], notebook: SubmittedNotebook) -> dict[str, Any]:
    """The grades or comments of a submitted notebook, by the name of their cell."""
    query = gradebook.db.query(BaseCell.name, kind).join(kind.cell).filter(kind.notebook_id == notebook.id)
    return {name: entry for name, entry in query}


def exercise_of_each(assignment: Assignment) -> dict[str, str]:
    """The exercise of each test cell of an assignment; a test of none stands for itself."""
    answers = [cell.name for notebook in assignment.notebooks for cell in notebook.solution_cells]
    tests = [cell.name for notebook in assignment.notebooks for cell in notebook.grade_cells]
    return {test: exercise_of(test, answers) or test for test in tests}


def outcomes(cell: NotebookNode) -> list[dict[str, Any]]:
    """The data of the outcome cards that a cell displayed, in their order."""
    shown = [output.get("data", {}).get(MIME) for output in cell.get("outputs", ())]
    return [data for data in shown if isinstance(data, dict)]


def found_right(cell: NotebookNode) -> bool:
    """Whether the checks of a test cell found the answer right, if it has any."""
    cards = outcomes(cell)
    if calls_race(cell.source):
        return all(data.get("right", True) for data in cards)
    if any("right" in data for data in cards):
        return all(data.get("right", False) for data in cards)
    return _points(cell) > 0  # something else than check tests here


def _points(cell: NotebookNode) -> float:
    return float(as_text(cell.outputs[-1].data["text/plain"]))


def card(word: str, message: str, max_points: float) -> NotebookNode:
    """An outcome card with 0 points, in the form that ``check`` displays."""
    shown = Outcome(word, 0, max_points, message)
    forms = {"text/plain": shown.text(), "text/html": shown.html(), MIME: shown.data}
    return new_output("display_data", forms)


def error_message(error: NotebookNode, answer: NotebookNode | None) -> str:
    """What an error in a test cell means for the student whose answer is in the cell ``answer``."""
    if error.ename in (TIMED_OUT, PROCESS_ENDED, NOT_RUN):
        return error.evalue
    outputs = answer.get("outputs", []) if answer else []
    errors = [output for output in outputs if output.output_type == "error"]
    name = re.search(r"name '(\w+)' is not defined", error.evalue)
    if error.ename == "NameError" and name:
        advice = "Keep the name that the task gives, and keep the given cells above the test."
        message = f"The test uses `{name[1]}`, but nothing of this name was defined before it. {advice}"
    else:
        message = f"The test stopped with {short(error)}. Call your answer with your own inputs to see why."
    if errors:
        message += f" First mend the cell with your solution: {short(errors[-1])}"
    return message


def short(error: NotebookNode) -> str:
    """An error in one line, without the name of the file that the kernel made up for the cell."""
    if error.ename in (TIMED_OUT, PROCESS_ENDED, NOT_RUN):
        return error.evalue
    return f"{error.ename}: " + re.sub(r"\(\S+, (line \d+)\)", r"(\1)", error.evalue)


def as_text(value: str | list[str]) -> str:
    """The text of a MIME entry, which nbformat allows to be a list of lines."""
    return value if isinstance(value, str) else "".join(value)
