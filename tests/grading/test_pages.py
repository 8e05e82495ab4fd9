"""What nbgrader's pages show of a notebook, without a browser: nothing but what the allow-list has."""

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from autograder.authoring.colab import colab_cell
from autograder.nbgrader_plugin import patches
from autograder.nbgrader_plugin.markdown import safe_markdown
from autograder.nbgrader_plugin.pages import FeedbackPage, FormgraderPage
from autograder.nbgrader_plugin.points import card
from autograder.nbgrader_plugin.submissions import refusal

EVIL = '"><img src=x onerror=alert(1)><script>alert(1)</script>'
ABOUT: dict[str, dict[str, Any]] = {
    "feedback": {"nbgrader": {"notebook": "n", "score": 0, "max_score": 1, "late_penalty": 0}},
    "formgrade": {
        **{"submission_id": "1", "assignment_id": "a", "notebook_id": "n", "base_url": "", "index": 0},
        **{"total": 1, "student": EVIL, "first_name": EVIL, "last_name": EVIL, "notebook_path": EVIL},
    },
}
TEST = {"grade_id": "f_check", "grade": True, "solution": False, "locked": True, "points": 1}
PNG = "iVBORw0KGgo="


def with_grades(nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
    """What GetGrades does, with a comment."""
    for cell in nb.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.update(score=0, comment=f"*Good* {EVIL}")
    return nb, resources


@pytest.fixture(params=[FeedbackPage, FormgraderPage], scope="module")
def page(request: pytest.FixtureRequest) -> Callable[..., BeautifulSoup]:
    """Makes a page about a notebook with these cells and this metadata."""
    exporter = request.param()
    exporter.register_preprocessor(with_grades)

    def make(*cells: NotebookNode, **metadata: object) -> BeautifulSoup:
        notebook = new_notebook(cells=list(cells), metadata=metadata)
        return BeautifulSoup(exporter.from_notebook_node(notebook, ABOUT[exporter.kind])[0], "html.parser")

    return make


def a_test(*outputs: NotebookNode) -> NotebookNode:
    return new_code_cell("check(f)", metadata={"nbgrader": TEST}, outputs=list(outputs))


def acts(page: BeautifulSoup) -> list[Tag]:
    """The elements that run or load something, but for nbgrader's own."""
    active = ("script", "iframe", "object", "embed", "base", "form")
    ours = ("data:image/", "/formgrader/static/", "data:")
    return [
        tag
        for tag in page.find_all(True)
        if (tag.name in active and tag.get("nonce") != patches.MARK)
        or any(name.startswith("on") and value not in patches.CLICKS for name, value in tag.attrs.items())
        or not str(tag.get("src", "data:")).startswith(ours)
    ]


def test_markdown_and_comments_go_through_one_filter(page: Callable[..., BeautifulSoup]) -> None:
    answer = new_code_cell("f = 1", metadata={"nbgrader": {**TEST, "solution": True, "grade": False}})
    made = page(new_markdown_cell(f"**bold** {EVIL}"), answer)
    assert acts(made) == [] and made.strong.text == "bold"
    assert made.textarea or made.find(class_="panel-footer").em.text == "Good"


def test_what_markdown_may_have() -> None:
    for written, shown in [
        ("<b id=total_check name=x onclick=y style='position:fixed'>a</b>", "<b>a</b>"),
        ("<div class='modal'>a</div> <span class='k btn'>b</span>", "<div>a</div> <span>b</span>"),
        ("x <span class='k'>a</span>", '<span class="k">a</span>'),
        ("<a id=x target=y href='https://a.b' title=t>a</a>", '<a href="https://a.b" title="t">a</a>'),
        *((f"[a]({place})", f'<a href="{place}">a</a>') for place in ("http://a.b", "mailto:a@b.c", "#b")),
        *((f"[a]({place})", "<a>a</a>") for place in ("javascript:x", "//a.b", "/a", "a.html", "data:,a")),
        *((f"<a href='{place}'>a</a>", "<a>a</a>") for place in ("java&Tab;script:x", "file:///a")),
        *((f"<img src='data:image/{kind};base64,AA=='>", f"image/{kind}") for kind in ("png", "webp")),
        *((f"![a]({place})", '<img alt="a">') for place in ("https://a.b/c.png", "c.png")),
        ("![a](data:image/svg+xml;base64,AA==)", '<img alt="a">'),
        ("<details open id=x><summary>a</summary>b</details>", '<details open=""><summary>a</summary>'),
        ("a <svg><style>b</style></svg><form action=c><input name=d></form>", "<p>a </p>"),
        ("# A title", "<h1>A title</h1>"),
        ("<table><tr><td style='text-align:left' align=left>a", '<td align="left">a'),
    ]:
        assert shown in safe_markdown(written), written


def test_each_kind_of_output(page: Callable[..., BeautifulSoup]) -> None:
    for data, shown in [
        ({"text/html": f"<b id=x style='color:red' class=y>bold</b>{EVIL}"}, "<b>bold</b>"),
        ({"text/html": "<script>1</script>" * 501, "text/plain": "plain"}, "<pre>plain</pre>"),
        ({"text/html": "<style></style><div id=plot></div>", "text/plain": "plain"}, "<pre>plain</pre>"),
        ({"text/markdown": f"*a* {EVIL}", "text/plain": "plain"}, "<em>a</em>"),
        ({"text/latex": "$\\text{passed}$ <b>"}, "$\\text{passed}$ &lt;b&gt;"),
        ({"image/svg+xml": f"<svg>{EVIL}</svg>", "text/plain": "plain"}, "<pre>plain</pre>"),
        ({"application/vnd.jupyter.widget-view+json": {"model_id": "x"}, "text/plain": "p"}, "<pre>p</pre>"),
        ({"application/pdf": "x", "text/vnd.mermaid": EVIL, "text/plain": "plain"}, "<pre>plain</pre>"),
        ({"image/png": 'x" onerror="alert(1)', "text/plain": "plain"}, "<pre>plain</pre>"),
        ({"image/png": PNG}, f"data:image/png;base64,{PNG}"),
        ({"text/plain": f"\x1b[31mred\x1b[0m {EVIL}"}, '<span class="ansi-red-fg">red</span>'),
    ]:
        for kind, cell in product(("display_data", "execute_result"), (a_test(), new_code_cell("1"))):
            about = {"text/html": {"isolated": True}, "filenames": data}
            cell.outputs = [new_output(kind, data, metadata=about)]
            made = page(cell, widgets={"application/vnd.jupyter.widget-state+json": {"state": {"x": 1}}})
            assert acts(made) == []
            (box,) = made.find_all(class_="box")
            assert shown in str(box)


def test_each_box_says_what_it_is(page: Callable[..., BeautifulSoup]) -> None:
    said = new_output("stream", name="stdout", text="✓ passed")
    forged = card("passed", "right", 1)
    error = new_output("error", ename="E", evalue=EVIL, traceback=[EVIL])
    number = new_output("execute_result", {"text/plain": "0"})
    test = a_test(said, error, card("failed", EVIL, 1), number)
    made = page(test, new_code_cell("1", outputs=[said, forged]))
    boxes = made.find_all(class_="box")
    assert [(box.find(class_="box-label").text, bool(box.find(role="status"))) for box in boxes] == [
        ("Printed while the test ran", False),
        ("Error while the test ran", False),
        ("Result of the test", True),
        ("Points", False),
        ("Output of this cell", False),
        ("Output of this cell", False),
    ]
    assert acts(made) == []
    (status,) = made.find_all(role="status")
    assert re.search("background: ?#fdeceb", status["style"]), "a card keeps its colours"
    assert EVIL in status.text


def test_the_feedback_page_has_a_policy() -> None:
    html, _ = FeedbackPage().from_notebook_node(new_notebook(), ABOUT["feedback"])
    made = BeautifulSoup(html, "html.parser")
    assert made.find_all("script") == []
    policy = made.find("meta", attrs={"http-equiv": "Content-Security-Policy"})["content"]
    assert policy.startswith("default-src 'none';") and "script-src" not in policy
    assert [tag for tag in made.find_all(True) if tag.get("href") and not tag["href"].startswith("#")] == []


def test_feedback_begins_with_the_points_of_each_exercise() -> None:
    """Not with a line "Test cell" for each test, nor with the cell that fetches the course on Colab."""
    grades = {
        "pad": {"comment": "Neat."},
        "pad_check": {"points": 1, "score": 1},
        "pad_hidden_shares": {"points": 2, "score": 0.5},
        "pad_rows": {},
        "pad_rows_race": {"points": 4, "score": 4 / 3},
        "alone": {"points": 1, "score": 0},
    }
    cells = [colab_cell("https://github.com/ada/course", "exercises/01")]
    for name, about in grades.items():
        data = {**TEST, "grade_id": name, "grade": "points" in about, "solution": "points" not in about}
        cells.append(new_code_cell(f"{name}(1)", metadata={"nbgrader": data}))
    cells[-2].outputs = [card("passed", "right", 1), card("failed", "2× <b>, 4× asked for", 3)]

    def with_their_grades(nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        for cell in nb.cells:
            cell.metadata.nbgrader.update(grades[cell.metadata.nbgrader.grade_id])
        return nb, resources

    exporter = FeedbackPage()
    exporter.register_preprocessor(with_their_grades)
    about = {"nbgrader": {"notebook": "n", "score": 2.5, "max_score": 8, "late_penalty": 0.25}}
    made = BeautifulSoup(exporter.from_notebook_node(new_notebook(cells=cells), about)[0], "html.parser")
    assert made.h1.text == "n (Score: 2.5 / 8.0)" and made.html["lang"] == "en"
    no_card = [f"{test}: the test gave no result." for test in ("pad_hidden_shares, −1.5", "alone, −1")]
    mend = [" ".join(one.text.split()) for one in made.ol.find_all("li")]
    assert mend == ["pad_rows_race, −2.67: 2× <b>, 4× asked for", *no_card]
    rows = [row.find_all(["th", "td"]) for row in made.table.find_all("tr")]
    assert [[" ".join(cell.text.split()) for cell in row] for row in rows] == [
        ["Exercise", "Points", "Its tests"],
        ["pad", "1.5 of 3", "check 1 of 1, hidden_shares 0.5 of 2 Comment"],
        ["pad_rows", "1.33 of 4", "race 1.33 of 4"],
        ["alone", "0 of 1", "alone 0 of 1"],
        ["Handed in late", "−0.25", ""],
    ]
    names = {tag["name"] for tag in made.find_all("a", attrs={"name": True})}
    assert {tag["href"].removeprefix("#") for tag in made.table.find_all("a")} <= names
    assert "Test cell" not in made.text and "google.colab" not in made.text
    assert "pad(1)" in made.text


@pytest.mark.parametrize("text", ["**a " * 20_000, "<b x=1>" * 600, "![](attachment:x.png)", "\ud800"])
def test_what_cannot_be_rendered_is_shown_as_written(text: str) -> None:
    assert "script" not in safe_markdown(text)
    attached = {"x.png": {"image/png": "A" * 30_000_000}}
    assert BeautifulSoup(safe_markdown(text, attached), "html.parser").text.strip() == text.strip()


def test_ids_that_people_have_are_taken_and_those_with_markup_refused() -> None:
    for name in ("ada", "o'brien", "ada.l@example.org", "李", "Ada L_12", "O'Brien, Ä.", "12345", "-x"):
        assert refusal(name) is None
    for name in ("<b>", 'a"', "a&b", "a\nb", "\u202eada", "a\x1b[2J", "\udcff", "a\\", "a`", "{a}"):
        sentence = refusal(name)
        assert sentence and sentence.isascii() and sentence.isprintable()
