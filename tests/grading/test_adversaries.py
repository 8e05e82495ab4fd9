"""Hostile submissions get no points that they did not earn and hurt nobody; innocent ones lose none.

All files of tests/adversaries that the selected tests ask for are handed in as one class and graded by the
course's own command; of each kind one is graded by plain ``nbgrader autograde``, too.
"""

import re
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from grading_class import as_current
from hostile_class import HONEST, Aftermath, catalogue, grade
from lab_server import environment
from playwright.sync_api import Browser, BrowserContext, expect
from programs import running

from autograder.__main__ import main

ADVERSARIES = catalogue()
CANARIES = ("exhausts_processes", "innocent_files", "page_scripts")
PAGES = [name for name in ADVERSARIES if name.startswith(("page_", "innocent_page"))]

pytestmark = [pytest.mark.slow, pytest.mark.attack]


def handed_in_and_graded(request: pytest.FixtureRequest, folder: Path, *, plain: bool) -> Aftermath:
    """A graded class, with secrets wherever an adversary could want to look.

    In it are those that a selected test is about; all, if none is about a single one.
    """
    tests = [item for item in request.session.items if item.path == request.path]
    about = {item.callspec.params.get("name") for item in tests if hasattr(item, "callspec")}
    names = CANARIES if plain else list(ADVERSARIES)
    chosen = {name: ADVERSARIES[name] for name in [name for name in names if name in about] or names}
    kinds = ("solution", "hidden", "gradebook", "submission", "environment")
    tokens = {kind: f"token-{kind}-{secrets.token_hex(8)}" for kind in kinds}
    tokens["module"] = f"token_module_{secrets.token_hex(8)}"  # what a hidden test imports
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADING_SECRET", tokens["environment"])
        return grade(folder, chosen, tokens, plain)


@pytest.fixture(scope="module")
def by_the_engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    return handed_in_and_graded(request, tmp_path_factory.mktemp("engine"), plain=False)


@pytest.fixture(scope="module")
def by_nbgrader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    return handed_in_and_graded(request, tmp_path_factory.mktemp("nbgrader"), plain=True)


@pytest.fixture
def aftermath(graded: str, request: pytest.FixtureRequest) -> Aftermath:
    return request.getfixturevalue(graded)


def of(*names: str) -> pytest.MarkDecorator:
    """Of these adversaries: they are in the class where such a test is selected."""
    return pytest.mark.parametrize("name", names)


def handed_in(names: Iterable[str]) -> pytest.MarkDecorator:
    """For each of these adversaries: by the engine, and the canaries by nbgrader, too."""
    places = [("by_the_engine", name) for name in names]
    places += [("by_nbgrader", name) for name in names if name in CANARIES]
    return pytest.mark.parametrize(("graded", "name"), places)


each_class = pytest.mark.parametrize("graded", ["by_the_engine", "by_nbgrader"])
each = handed_in(ADVERSARIES)


def cards(aftermath: Aftermath, student: str) -> str:
    """What the test cells of a student showed, for a message."""
    return "\n".join(
        f"{cell.metadata.nbgrader.grade_id}: {output.get('data', {}).get('text/plain', '')}"
        for cell in aftermath.graded.autograded(student).cells
        if cell.metadata.get("nbgrader", {}).get("grade")
        for output in cell.outputs
    )


@each_class
def test_the_command_succeeds_and_leaves_nothing_behind(aftermath: Aftermath) -> None:
    assert (aftermath.failure, aftermath.processes, aftermath.changed) == (None, [], [])


@each
def test_points(name: str, aftermath: Aftermath) -> None:
    wrong = ADVERSARIES[name].wrong(aftermath.graded.points[name], aftermath.most)
    assert not wrong, cards(aftermath, name)


@handed_in([name for name, one in ADVERSARIES.items() if one.suspicious is not None])
def test_suspicious_events(name: str, aftermath: Aftermath) -> None:
    events = aftermath.graded.autograded(name).metadata.autograder.events
    assert bool(events) == ADVERSARIES[name].suspicious, events


@pytest.fixture(scope="module")
def report(by_the_engine: Aftermath) -> str:
    course, assignment = by_the_engine.graded.course, by_the_engine.graded.assignment
    with as_current(course):
        assert main(["report", assignment]) == 0
    return max(course.folder.rglob("*.html"), key=lambda path: path.stat().st_mtime).read_text()


@of(*[name for name, one in ADVERSARIES.items() if one.suspicious])
def test_the_report_names_it(name: str, report: str) -> None:
    assert name in report


@each_class
@pytest.mark.parametrize("student", HONEST)
def test_the_honest_beside_them_get_everything(student: str, aftermath: Aftermath) -> None:
    assert aftermath.graded.points[student] == aftermath.most, cards(aftermath, student)


@each
def test_no_secret_is_shown_and_no_more_than_a_page_can_hold(name: str, aftermath: Aftermath) -> None:
    # The autograded notebooks keep the hidden tests, for the instructor.
    outputs = [cell.get("outputs", []) for cell in aftermath.graded.autograded(name).cells]
    assert max(map(len, outputs)) <= 1000 and sum(len(str(some)) for some in outputs) < 40_000_000
    folder = aftermath.graded.course.folder / "feedback" / name
    pages = [path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()]
    shown = "".join([*pages, *map(str, outputs)])
    assert [kind for kind, token in aftermath.secrets.items() if token in shown] == []


# What opening a page does, in a real browser. The names of the parameters: "feedback", or "formgrader".

# What is on the page: whatever has an attribute that no reader needs, scores and cards that something covers.
LOOK = """() => {
    const fine = {
        A: ['href', 'title', 'tabindex'], IMG: ['src', 'alt', 'title', 'width', 'height'], DETAILS: ['open'],
        TD: ['align'], TH: ['align'], OL: ['start'], SPAN: ['class'], DIV: ['class'], PRE: [],
    };
    const odd = each => [...each.attributes].filter(one => !(fine[each.tagName] || []).includes(one.name));
    const inOpen = each => {
        each.scrollIntoView({block: 'center', behavior: 'instant'});
        const place = each.getBoundingClientRect();
        const found = document.elementFromPoint(place.x + place.width / 2, place.y + place.height / 2);
        return each.contains(found);
    };
    const students = [...document.querySelectorAll('.text_cell_render *')];
    const ours = 'h1.page-title, h4, div[role=status], .nbgrader_cell > .panel-heading';
    const heads = [...document.querySelectorAll(ours)];
    return {
        ran: [window.adversary, document.title].filter(one => one === true || one === 'adversary').length > 0,
        odd: students.filter(each => odd(each).length).map(each => each.outerHTML.slice(0, 200)),
        kinds: [...new Set(students.map(each => each.tagName.toLowerCase()))],
        links: students.filter(each => each.href !== undefined).map(each => each.getAttribute('href')),
        pictures: students.filter(each => each.src).map(each => each.getAttribute('src').slice(0, 40)),
        covered: heads.filter(each => each.checkVisibility() && !inOpen(each)).map(each => each.innerText),
        // What a text in there draws can leave its box.
        unclipped: [...document.querySelectorAll('.output_subarea, .text_cell_render')].filter(each =>
            [getComputedStyle(each).overflowX, getComputedStyle(each).overflowY].includes('visible')
        ).map(each => each.innerText.slice(0, 200)),
        cards: [...document.querySelectorAll('div[role=status]')].map(each => each.innerText),
        labelled: [...document.querySelectorAll('.box')].map(each => each.innerText),
        formulas: document.querySelectorAll('.MathJax, .MathJax_CHTML, mjx-container').length,
        text: document.body.innerText,
    };
}"""
Seen = SimpleNamespace  # what LOOK says of a page, and what it asked for, but for itself


def see(context: BrowserContext, address: str) -> Seen:
    """Open a page, wait until it asks for nothing more, and look at it."""
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.goto(address, wait_until="networkidle")
    seen = Seen(asked=[one for one in asked if one != address], **page.evaluate(LOOK))
    page.close()
    return seen


@contextmanager
def formgrader(course: Path, home: Path) -> Iterator[tuple[str, str]]:
    """A Jupyter server in a course's folder; gives its address, and the token to log in with."""
    token, log = secrets.token_hex(), home / "server.log"
    command = (sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", "--port=0")
    options = (f"--IdentityProvider.token={token}", "--ip=127.0.0.1")

    def address() -> re.Match[str] | None:
        return re.search(r"(http://127\.0\.0\.1:\d+)/\S*token=", log.read_text())

    with running(log, address, *command, *options, cwd=course, env=environment(home)) as found:
        yield found[1], token


class Instructor:
    """Somebody who is logged in to the instructor's own server at ``address``, with a browser."""

    def __init__(self, aftermath: Aftermath, context: BrowserContext, address: str, token: str) -> None:
        self.graded, self.most = aftermath.graded, aftermath.most
        self.context, self.address = context, address
        page = context.new_page()
        page.goto(f"{address}/formgrader/manage_assignments?token={token}", wait_until="networkidle")
        expect(page.get_by_role("link", name="assignment", exact=True)).to_be_visible()  # its own scripts ran
        page.close()
        name = self.graded.assignment
        listed = context.request.get(f"{address}/formgrader/api/submitted_notebooks/{name}/{name}").json()
        self.pages = {one["student"]: f"{address}/formgrader/submissions/{one['id']}/" for one in listed}
        self.look = cache(self._open)

    def _open(self, page: str, name: str) -> Seen:
        """What this page about a notebook is like, once it was opened."""
        feedback = self.graded.course.page(name, self.graded.assignment).as_uri()
        return see(self.context, feedback if page == "feedback" else self.pages[name])

    def points(self, name: str) -> dict[str, float | None]:
        """What the gradebook says now."""
        return self.graded.course.points(self.graded.assignment)[name]


@pytest.fixture(scope="module")
def instructor(browser: Browser, by_the_engine: Aftermath, tmp_path_factory) -> Iterator[Instructor]:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(120_000)
    with formgrader(by_the_engine.graded.course.folder, tmp_path_factory.mktemp("home")) as server:
        yield Instructor(by_the_engine, context, *server)
        context.close()


both_pages = pytest.mark.parametrize("page", ["feedback", "formgrader"])


@both_pages
@of(*PAGES)
def test_what_is_written_is_only_there_to_be_read(page: str, name: str, instructor: Instructor) -> None:
    """Nothing runs or loads, cards are those of the tests, and looking at a page gives no points."""
    found = instructor.look(page, name)
    own = (f"{instructor.address}/formgrader/static/", f"{instructor.address}/formgrader/api/", "data:")
    assert not found.ran
    assert [one for one in found.asked if page == "feedback" or not one.startswith(own)] == []
    kinds = {"script", "style", "svg", "math", "iframe", "object", "form", "input", "button"}
    pictures = "data:image/(png|jpeg|gif|webp);base64,"
    assert found.odd == [] and kinds.isdisjoint(found.kinds)
    assert [link for link in found.links if link and not re.match("https?://|mailto:|#", link)] == []
    assert [one for one in found.pictures if not re.match(pictures, one)] == []
    assert found.formulas == 0 and "raw-cell-was-here" not in found.text
    assert len(found.cards) == len(instructor.most)
    odd = [card for card in found.cards if card.startswith("✓") or not card.replace("\n", "").isprintable()]
    assert odd == [] == found.covered == found.unclipped  # nothing lies over them
    assert not any(instructor.points(name).values())


@both_pages
@of("page_prints_cards")
def test_what_an_answer_printed_says_so(page: str, name: str, instructor: Instructor) -> None:
    said = [text for text in instructor.look(page, name).labelled if "✓ passed" in text]
    assert said
    assert {text.split("\n")[0] for text in said} == {"Printed while the test ran", "Output of this cell"}


@of("prints_inputs")
def test_what_an_answer_printed_in_a_hidden_test_is_for_the_instructor_alone(name, by_the_engine) -> None:
    graded = by_the_engine.graded
    for_all = graded.course.page(name, graded.assignment).read_text()
    assert "(3, 117)" in str(graded.autograded(name)) and "(3, 117)" not in for_all
    assert all(f"{how} (3" in for_all for how in ("printed", "written", "warned of"))  # in the other tests
    assert graded.page(name).count("passed: right in") == 2  # what a test found stays


@of("page_files")
def test_what_is_handed_in_beside_the_notebook_is_not_served_or_run(name, instructor: Instructor) -> None:
    folder = instructor.graded.submitted(name).parent
    handed_in = {path.name for path in folder.iterdir()}
    assert {"look.html", "nbgrader_config.py"} <= handed_in
    for file in handed_in:
        assert instructor.context.request.get(instructor.pages[name] + quote(file)).status == 404
    address = f"{instructor.address}/formgrader?path={quote(str(folder), safe='')}"
    assert instructor.context.request.get(address).status == 403
    assert list(instructor.graded.course.folder.rglob("adversary-was-here")) == []


@both_pages
@of("page_unreadable")
def test_a_broken_file_is_quoted(page: str, name: str, instructor: Instructor) -> None:
    found = instructor.look(page, name)
    assert "img" not in found.kinds
    assert "` <img src=x onerror='adversary=true'> **30 of 30**" in found.text


@of("page_student_id")
def test_no_student_has_markup_for_a_name(name: str, instructor: Instructor) -> None:
    students = instructor.graded.points.keys()
    assert name in students
    assert [student for student in students if not student.isidentifier()] == []
    assert instructor.pages.keys() == students
    folder = instructor.graded.course.folder / "autograded"
    assert {path.name for path in folder.iterdir()} == students
    said = r"The student id 'ada\u202e\u200b' has characters that no id may have"
    assert said in instructor.graded.course.log.read_text()


@of("page_student_id")
@pytest.mark.parametrize("path", ["manage_students/{}", "gradebook/x/{}", "manage_students/%5C/{}"])
def test_an_address_does_not_end_up_in_a_script(path: str, name: str, instructor: Instructor) -> None:
    script = "window.adversary=1"
    page = instructor.context.new_page()
    for attack in (f'";{script};"', f"</script><script>{script}</script>", f";{script}//"):
        page.goto(f"{instructor.address}/formgrader/{path.format(quote(attack, safe=''))}")
        assert page.evaluate("window.adversary") is None
    page.close()


@of("page_takes_names")
def test_the_formgrader_still_works(name: str, instructor: Instructor) -> None:
    page = instructor.context.new_page()
    page.goto(instructor.pages[name], wait_until="networkidle")
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
    assert instructor.points(name)["shift_check"] == 1


@both_pages
@of("innocent_page")
def test_an_innocent_page_looks_as_it_was_written(page: str, name: str, instructor: Instructor) -> None:
    found = instructor.look(page, name)
    wanted = "h2 details summary strong em a table th td div span img blockquote ol li sub sup kbd"
    assert set(wanted.split()) <= set(found.kinds)
    assert {"https://pytorch.org/docs", "#end"} <= set(found.links)
    assert len(found.pictures) == 2 and "Euler: $e^{i\\pi} + 1 = 0$" in found.text


def test_the_catalogue_is_complete() -> None:
    assert len(ADVERSARIES) >= 140 and all(one.parts for one in ADVERSARIES.values())
