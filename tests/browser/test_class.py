"""A student fetches, solves and hands in an assignment, an instructor grades it; both click and type."""

import re
import sys
from getpass import getuser
from pathlib import Path

import pytest
from chromium import WCAG, findings, findings_in_both_schemes
from lab_notebook import Notebook, findings_in_both_themes, menu
from lab_server import environment
from playwright.sync_api import FrameLocator, Locator, Page, expect
from programs import printed

ASSIGNMENT = "01_tensor_creation"
CHECK, RANGE, RACE = "check(one_hot,", "on=[label_out_of_range, negative_label]", "race(one_hot,"
# A negative label counts from the end here.
WRONG = "return torch.eye(classes, device=labels.device)[labels]"
RIGHT = """\
table = torch.zeros(len(labels), classes, device=labels.device)
return table.scatter_(1, labels[:, None], 1)"""
# Typeset, it would look like what it is not.
FORMULA = r'raise ValueError(r"$\text{passed}$ \(\text{passed}\) $$\text{passed}$$")'

pytestmark = pytest.mark.slow


def command(course: Path, home: Path, *arguments: str) -> None:
    env = environment(home) | {"PYTHONPATH": str(course)}
    printed(sys.executable, "-m", *arguments, cwd=course, env=env)


def test_an_assignment_from_release_to_feedback(lab: str, page: Page, course, home, screenshot) -> None:
    command(course, home, "nbgrader", "generate_assignment", ASSIGNMENT, "--force")
    command(course, home, "nbgrader", "release_assignment", ASSIGNMENT)
    page.goto(lab)
    Notebook(page, "Fast PyTorch, measured")
    menu(page, "Nbgrader", "Assignment List")
    page.locator("#released_assignments_list").get_by_role("button", name="Fetch").click()
    fetched = page.locator("#fetched_assignments_list")
    fetched.get_by_role("button", name=ASSIGNMENT).click()
    fetched.get_by_role("link", name=ASSIGNMENT).click()
    solve(page, screenshot)
    submit(page)
    see_progress(page)

    menu(page, "Nbgrader", "Formgrader")
    grade(page.frame_locator("iframe"))
    find_the_points(page.frame_locator("iframe"))
    look_at_all_pages(page, page.frames[-1].url)
    read_feedback(page, course, screenshot)
    command(course, home, "autograder", "report", ASSIGNMENT)
    page.goto((course / "reports" / f"{ASSIGNMENT}.html").as_uri())
    expect(page.get_by_role("heading", name=f"Grades of {ASSIGNMENT}")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text="1 of 1submissions graded")).to_be_visible()
    assert findings_in_both_schemes(page) == []


def solve(page: Page, screenshot) -> None:
    notebook = Notebook(page, "Exercises 01 · Creating tensors")
    for cell in ("from autograder import check, costs, race", "def one_hot_slow(", "def one_hot(", CHECK):
        notebook.run(cell)
    expect(notebook.card(CHECK)).to_contain_text("not attempted")

    notebook.replace_line("def one_hot(", "raise NotImplementedError", FORMULA)
    run_tests(notebook)
    expect(notebook.card(CHECK)).to_contain_text("$$\\text{passed}$$")
    notebook.replace_line("def one_hot(", "raise ValueError", WRONG)
    run_tests(notebook)
    expect(notebook.card(CHECK)).to_contain_text("passed: right in 2 cases. (1 of 1 points)")
    refused = "failed: expected IndexError or RuntimeError, but got a result of type Tensor (0 of 1 points)"
    expect(notebook.card(RANGE)).to_contain_text(refused)
    expect(notebook.card(RANGE)).to_contain_text("Input: negative_label")
    screenshot(page, "exercise")
    assert findings_in_both_themes(page) == []

    notebook.replace_line("def one_hot(", "return torch.eye", RIGHT)
    run_tests(notebook)
    expect(notebook.card(RANGE)).to_contain_text("passed: right in 4 cases. (1 of 1 points)")
    race(notebook)
    assert findings_in_both_themes(page) == []

    notebook.panel.get_by_role("button", name="Validate").click()
    result = page.get_by_role("dialog")
    expect(result).to_contain_text("check(positional_table,")
    expect(result).not_to_contain_text("(one_hot,")
    result.get_by_role("button", name="Ok").click()


def run_tests(notebook: Notebook) -> None:
    """Run the solution and the tests up to the race, cell by cell."""
    for _ in range(4):
        notebook.page.keyboard.press("Shift+Enter")


def race(notebook: Notebook) -> None:
    """Run the race until the machine is quiet enough to judge."""
    decided = re.compile("passed|failed|error")
    for _ in range(10):
        notebook.run(RACE)
        notebook.wait_until_idle()
        if decided.search(notebook.card(RACE).inner_text()):
            break
    expect(notebook.card(RACE)).to_contain_text(re.compile(r"passed.*\(2 of 2 points\)", re.DOTALL))
    expect(notebook.card(RACE).get_by_role("table", name="time per call")).to_be_visible()


def submit(page: Page) -> None:
    page.get_by_role("tab", name="Assignments").click()
    page.locator("#fetched_assignments_list").get_by_role("button", name="Submit").click()
    submitted = page.locator("#submitted_assignments_list")
    expect(submitted.get_by_text(ASSIGNMENT)).to_be_visible()
    expect(submitted).to_contain_text(re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"))


def grade(formgrader: FrameLocator) -> None:
    assignment = formgrader.get_by_role("row").filter(has_text=ASSIGNMENT)
    expect(assignment).to_contain_text("released")
    press(formgrader, assignment, ".collect", "Successfully collected submissions")
    assignment.locator(".num-submissions a").click()
    student = formgrader.get_by_role("row").filter(has_text=getuser())
    expect(student).to_contain_text("needs autograding")
    press(formgrader, student, ".autograde", "Successfully autograded")
    expect(student).to_contain_text("graded")
    press(formgrader, student, ".generate-feedback", "Successfully generated feedback")


def find_the_points(formgrader: FrameLocator) -> None:
    """Where the guide says that they can be changed."""
    guide = Path(__file__).resolve().parents[2] / "docs" / "instructors.md"
    path = re.search(r"\*(Manage Students → [^*]+)\*", " ".join(guide.read_text(encoding="utf-8").split()))
    assert path
    first, student, *steps = path[1].split(" → ")
    assert student == "the student" and steps == [ASSIGNMENT, ASSIGNMENT]
    formgrader.get_by_role("link", name=first).click()
    formgrader.get_by_role("row").filter(has_text=getuser()).get_by_role("link").first.click()
    for step in steps:
        formgrader.locator("#main-table").get_by_role("link", name=step).click()
    expect(formgrader.locator("input.score").first).to_be_editable()


def look_at_all_pages(page: Page, submission: str) -> None:
    """The formgrader without JupyterLab around it: the page about a submission, and each kind of list."""
    home, _, about = submission.partition("submissions/")
    graded, student = f"gradebook/{ASSIGNMENT}", f"manage_students/{getuser()}"
    lists = f"manage_assignments gradebook {graded} {graded}/{ASSIGNMENT} manage_submissions/{ASSIGNMENT}"
    for path in (f"submissions/{about} {lists} manage_students {student} {student}/{ASSIGNMENT}").split():
        page.goto(home + path, wait_until="networkidle")
        assert findings_in_both_schemes(page, **WCAG) == [], path
    for path, opens in ("manage_assignments", "Add new assignment"), ("manage_students", "Add new student"):
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.goto(home + path, wait_until="networkidle")
            page.get_by_role("link", name=opens).click()
            expect(page.get_by_role("dialog")).to_have_css("opacity", "1")  # it fades in
            assert findings(page, {"include": [[".modal-dialog"]]}, **WCAG) == [], opens


def press(formgrader: FrameLocator, row: Locator, button: str, said: str) -> None:
    """Press a button in a row of a table, and close the window that says what came of it."""
    row.locator(f"{button} a").click()
    window = formgrader.get_by_role("dialog")
    expect(window).to_contain_text(said)
    window.get_by_role("button", name="OK").click()
    expect(window).to_be_hidden()


def see_progress(page: Page) -> None:
    page.get_by_role("tab", name="index.ipynb").click()
    front = Notebook(page, "Fast PyTorch, measured")
    front.panel.get_by_role("columnheader", name="you passed").click()
    page.keyboard.press("Shift+Enter")
    expect(front.panel.get_by_text(re.compile(r"1 of \d+ exercises passed"))).to_be_visible()
    chapter = front.panel.get_by_role("row", name=re.compile("01 · Creating tensors"))
    expect(chapter.get_by_role("cell").last).to_have_text(re.compile(r"●○+\s1\sof\s7"))


def read_feedback(page: Page, course: Path, screenshot) -> None:
    (feedback,) = (course / "feedback").glob(f"*/{ASSIGNMENT}/{ASSIGNMENT}.html")
    page.goto(feedback.as_uri())
    cards = page.get_by_role("status")
    expect(cards.nth(0)).to_contain_text("passed: right in 2 cases. (1 of 1 points)")
    expect(cards.nth(1)).to_contain_text("passed: right in 5 cases. (2 of 2 points)")
    expect(cards.nth(4)).to_contain_text("not attempted")
    cards.nth(3).scroll_into_view_if_needed()
    screenshot(page, "feedback")
    assert findings_in_both_schemes(page) == []
