"""Hostile submissions get no points that they did not earn and hurt nobody; innocent ones lose none.

All files of tests/adversaries are handed in as one class and graded by one real ``nbgrader autograde``.
"""

from __future__ import annotations

import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hostile_class import LAST, Adversary, Aftermath, catalogue, grade
from page_readers import Seen, formgrader, see
from playwright.sync_api import Browser, BrowserContext, expect

ROOT = Path(__file__).resolve().parents[2]
ADVERSARIES = catalogue()
NEAR = 0.05
PAGES = [name for name in ADVERSARIES if name.startswith(("page_", "innocent_page"))]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    """The graded class, with secrets wherever an adversary could want to look."""
    kinds = ("solution", "hidden", "gradebook", "submission", "environment")
    tokens = {kind: f"token-{kind}-{secrets.token_hex(8)}" for kind in kinds}
    tokens["module"] = f"token_module_{secrets.token_hex(8)}"  # what a hidden test imports
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADING_SECRET", tokens["environment"])
        return grade(tmp_path_factory.mktemp("adversaries"), ROOT, ADVERSARIES, tokens)


@pytest.fixture(scope="module")
def report(aftermath: Aftermath) -> str:
    """The report for the instructor, as HTML."""
    course, assignment = aftermath.graded.course, aftermath.graded.assignment
    subprocess.run(
        [sys.executable, "-m", "autograder", "report", assignment], cwd=course.folder, check=True, timeout=120
    )
    return max(course.folder.rglob("*.html"), key=lambda path: path.stat().st_mtime).read_text()


def cards(aftermath: Aftermath, student: str) -> str:
    """What the test cells of a student showed, for a message."""
    return "\n".join(
        f"{cell.metadata.nbgrader.grade_id}: {output.get('data', {}).get('text/plain', '')}"
        for cell in aftermath.graded.autograded(student).cells
        if cell.metadata.get("nbgrader", {}).get("grade")
        for output in cell.outputs
    )


def test_the_command_succeeds(aftermath: Aftermath) -> None:
    assert aftermath.failure is None


@pytest.mark.parametrize("name", ADVERSARIES)
def test_points(name: str, aftermath: Aftermath) -> None:
    adversary = ADVERSARIES[name]
    got = aftermath.graded.points[name]
    wrong = {
        test: (got.get(test), f"instead of {wanted}")
        for test, wanted in adversary.points(aftermath.most).items()
        if not adversary.allows(test, wanted, got.get(test), NEAR)
    }
    assert not wrong, cards(aftermath, name)


@pytest.mark.parametrize("name", [name for name, one in ADVERSARIES.items() if one.suspicious is not None])
def test_suspicious_events(name: str, aftermath: Aftermath) -> None:
    events = aftermath.graded.autograded(name).metadata.autograder.events
    assert bool(events) == ADVERSARIES[name].suspicious, events


def test_the_report_names_them(report: str) -> None:
    for name, adversary in ADVERSARIES.items():
        if adversary.suspicious:
            assert name in report


@pytest.mark.parametrize("student", ["aa_honest", LAST])
def test_the_honest_before_and_after_them_get_everything(student: str, aftermath: Aftermath) -> None:
    assert aftermath.graded.points[student] == aftermath.most, cards(aftermath, student)


def test_no_process_lives_on(aftermath: Aftermath) -> None:
    assert aftermath.processes == []


def test_no_file_was_changed(aftermath: Aftermath) -> None:
    assert aftermath.changed == []


@pytest.mark.parametrize("name", ADVERSARIES)
def test_no_secret_is_shown(name: str, aftermath: Aftermath) -> None:
    graded = aftermath.graded
    folder = graded.course.folder / "feedback" / name
    shown = "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())
    # The autograded notebooks keep the hidden tests, for the instructor.
    shown += "".join(str(cell.get("outputs", "")) for cell in graded.autograded(name).cells)
    assert [kind for kind, token in aftermath.secrets.items() if token in shown] == []


@pytest.mark.parametrize("name", ADVERSARIES)
def test_no_cell_shows_more_than_a_page_can_hold(name: str, aftermath: Aftermath) -> None:
    outputs = [cell.get("outputs", []) for cell in aftermath.graded.autograded(name).cells]
    assert max(map(len, outputs)) <= 1000
    assert sum(len(str(some)) for some in outputs) < 40_000_000


# What opening a page does. The names of the parameters: "feedback", or "formgrader".


@pytest.fixture(scope="module")
def server(aftermath: Aftermath, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The instructor's own server: its address, and its token."""
    with formgrader(aftermath.graded.course.folder, tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture(scope="module")
def instructor(browser: Browser, server: tuple[str, str]) -> Iterator[BrowserContext]:
    """The browser of somebody who is logged in there."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto(f"{server[0]}/formgrader/manage_assignments?token={server[1]}", wait_until="networkidle")
    expect(page.get_by_role("link", name="assignment", exact=True)).to_be_visible()  # its own scripts ran
    page.close()
    yield context
    context.close()


@pytest.fixture(scope="module")
def addresses(aftermath: Aftermath, server: tuple[str, str], instructor: BrowserContext) -> dict[str, str]:
    """The formgrader's page of each student."""
    name = aftermath.graded.assignment
    listed = instructor.request.get(f"{server[0]}/formgrader/api/submitted_notebooks/{name}/{name}").json()
    return {one["student"]: f"{server[0]}/formgrader/submissions/{one['id']}/" for one in listed}


@pytest.fixture(scope="module")
def seen(
    aftermath: Aftermath, instructor: BrowserContext, addresses: dict[str, str]
) -> dict[tuple[str, str], Seen]:
    """Both pages about each hostile notebook, after they were opened in that browser."""
    course, assignment = aftermath.graded.course, aftermath.graded.assignment
    found = {}
    for name in PAGES:
        found["feedback", name] = see(instructor, course.page(name, assignment).as_uri())
        found["formgrader", name] = see(instructor, addresses[name])
    return found


each_page = pytest.mark.parametrize(
    ("page", "name"), [(page, name) for name in PAGES for page in ("feedback", "formgrader")]
)


@each_page
def test_nothing_in_a_page_runs_or_loads(
    page: str, name: str, seen: dict[tuple[str, str], Seen], server: tuple[str, str]
) -> None:
    found = seen[page, name]
    own = (f"{server[0]}/formgrader/static/", f"{server[0]}/formgrader/api/", "data:")
    assert not found.ran
    assert [one for one in found.asked if page == "feedback" or not one.startswith(own)] == []


@each_page
def test_what_is_written_is_only_there_to_be_read(
    page: str, name: str, seen: dict[tuple[str, str], Seen]
) -> None:
    found = seen[page, name]
    assert found.odd == []
    assert {"script", "style", "svg", "math", "iframe", "object", "form", "input", "button"}.isdisjoint(
        found.kinds
    )
    assert [link for link in found.links if link and not re.match("https?://|mailto:|#", link)] == []
    assert [
        one for one in found.pictures if not re.match("data:image/(png|jpeg|gif|webp);base64,", one)
    ] == []
    assert found.formulas == 0
    assert "raw-cell-was-here" not in found.text


@each_page
def test_nothing_lies_over_results(page: str, name: str, seen: dict[tuple[str, str], Seen]) -> None:
    assert seen[page, name].covered == []
    assert seen[page, name].unclipped == []


@each_page
def test_cards_are_those_of_the_tests(
    page: str, name: str, seen: dict[tuple[str, str], Seen], aftermath: Aftermath
) -> None:
    cards = seen[page, name].cards
    assert len(cards) == len(aftermath.most)
    assert [card for card in cards if card.startswith("✓") or not card.replace("\n", "").isprintable()] == []


def test_looking_at_pages_gives_no_points(seen: dict[tuple[str, str], Seen], aftermath: Aftermath) -> None:
    points = aftermath.graded.course.points(aftermath.graded.assignment)
    assert {name: sum(filter(None, points[name].values())) for name in PAGES} == dict.fromkeys(PAGES, 0)


def test_what_an_answer_printed_says_so(seen: dict[tuple[str, str], Seen]) -> None:
    for page in ("feedback", "formgrader"):
        said = [text for text in seen[page, "page_prints_cards"].labelled if "✓ passed" in text]
        assert said
        assert {text.split("\n")[0] for text in said} == {"Printed while the test ran", "Output of this cell"}


def test_what_was_handed_in_beside_the_notebook_is_not_served(
    addresses: dict[str, str], instructor: BrowserContext, aftermath: Aftermath
) -> None:
    handed_in = [path.name for path in aftermath.graded.submitted("page_files").parent.iterdir()]
    assert "look.html" in handed_in
    for name in handed_in:
        assert instructor.request.get(addresses["page_files"] + quote(name)).status == 404


def test_no_link_makes_the_formgrader_run_what_was_handed_in(
    server: tuple[str, str], instructor: BrowserContext, aftermath: Aftermath
) -> None:
    folder = aftermath.graded.submitted("page_files").parent
    assert (folder / "nbgrader_config.py").exists()
    answer = instructor.request.get(f"{server[0]}/formgrader?path={quote(str(folder), safe='')}")
    assert answer.status == 403
    assert list(aftermath.graded.course.folder.rglob("adversary-was-here")) == []


def test_a_broken_file_is_quoted(seen: dict[tuple[str, str], Seen]) -> None:
    for page in ("feedback", "formgrader"):
        found = seen[page, "page_unreadable"]
        assert "img" not in found.kinds
        assert "` <img src=x onerror='adversary=true'> **30 of 30**" in found.text


def test_no_student_has_markup_for_a_name(aftermath: Aftermath, addresses: dict[str, str]) -> None:
    assert [name for name in aftermath.graded.points if not name.isidentifier()] == []
    assert addresses.keys() == aftermath.graded.points.keys()
    folder = aftermath.graded.course.folder / "autograded"
    assert {path.name for path in folder.iterdir()} == aftermath.graded.points.keys()
    assert (
        r"The student id 'ada\u202e\u200b' has characters that no id may have"
        in aftermath.graded.course.log.read_text()
    )


@pytest.mark.parametrize("path", ["manage_students/{}", "gradebook/x/{}", "manage_students/%5C/{}"])
def test_an_address_does_not_end_up_in_a_script(
    path: str, server: tuple[str, str], instructor: BrowserContext
) -> None:
    page = instructor.new_page()
    for attack in (
        '";window.adversary=1;"',
        "</script><script>window.adversary=1</script>",
        ";window.adversary=1//",
    ):
        page.goto(f"{server[0]}/formgrader/{path.format(quote(attack, safe=''))}")
        assert page.evaluate("window.adversary") is None
    page.close()


def test_the_formgrader_still_works(
    addresses: dict[str, str], instructor: BrowserContext, aftermath: Aftermath
) -> None:
    page = instructor.new_page()
    page.goto(addresses["page_takes_names"], wait_until="networkidle")
    score = page.locator("#shift_check")
    panel = page.locator(".nbgrader_cell", has=score)
    with page.expect_response(lambda answer: answer.request.method == "PUT"):
        panel.get_by_role("button", name="Full credit").click()
    expect(score).to_have_value("1")
    comment = page.locator("#shift-comment")
    comment.fill("Look *again* <script>window.adversary = true</script>")
    with page.expect_response(lambda answer: answer.request.method == "PUT"):
        comment.blur()
    page.get_by_role("link", name="Next").click()
    page.wait_for_url(re.compile("/formgrader/submissions/(?!.*next)"))
    page.close()
    name = aftermath.graded.assignment
    assert aftermath.graded.course.points(name)["page_takes_names"]["shift_check"] == 1


def test_an_innocent_page_looks_as_it_was_written(seen: dict[tuple[str, str], Seen]) -> None:
    for page in ("feedback", "formgrader"):
        found = seen[page, "innocent_page"]
        wanted = "h2 details summary strong em a table th td div span img blockquote ol li sub sup kbd"
        assert set(wanted.split()) <= set(found.kinds)
        assert {"https://pytorch.org/docs", "#end"} <= set(found.links)
        assert len(found.pictures) == 2
        assert "Euler: $e^{i\\pi} + 1 = 0$" in found.text


def test_the_catalogue_is_complete() -> None:
    assert len(ADVERSARIES) >= 140
    assert all(isinstance(one, Adversary) and one.parts for one in ADVERSARIES.values())
