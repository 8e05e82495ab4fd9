"""The website, built once without a network: its pages, its links, and how it works in a browser."""

import html
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import pytest
from chromium import WCAG, findings_in_both_schemes
from programs import PATIENCE, printed, run, served
from repository import CHAPTERS, EXERCISES, ROOT, notebook
from test_notebooks import plain

from autograder.authoring.sources import address as course_address
from autograder.measuring import store
from autograder.teaching.guess import CLOSE, FAR, LATER, RIGHT, how_near, tally

pytestmark = pytest.mark.slow

NOTEBOOKS = [*(ROOT / f"course/{name}.ipynb" for name in CHAPTERS), *EXERCISES]
FRONT, CLAIMS, SEARCH = "index.html", "course/claims.html", "search.html?q=strides"
CHAPTER, LONGEST = "course/01_tensor_creation.html", "course/06_memory_format.html"
EXERCISE = "exercises/01_tensor_creation/01_tensor_creation.html"
GUIDE = "docs/instructors.html"
PAGES = [f"course/{chapter}.html" for chapter in CHAPTERS]


def offline() -> list[str]:
    """What to put before a command so that it runs without a network; nothing where that cannot be had."""
    cut = ["unshare", "--net", "--map-root-user"]
    return cut if shutil.which("unshare") and run(*cut, "true").returncode == 0 else []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The website, built as `make site` builds it."""
    pytest.importorskip("sphinx_book_theme", reason='the website needs pip install -e ".[site]"')
    folder = tmp_path_factory.mktemp("website")
    sphinx = ["-m", "sphinx", "-q", "-j", "auto", "-n", "-W", "--keep-going", "-c", ROOT / "docs"]
    printed(*offline(), sys.executable, *sphinx, "-d", folder / "doctrees", ROOT, folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, str]:
    """Every page; under _static there are only parts of the theme."""
    found = [path for path in sorted(site.rglob("*.html")) if site / "_static" not in path.parents]
    return {path: path.read_text(encoding="utf-8") for path in found}


def content(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", page))


def attributes(page: str, *names: str) -> list[str]:
    """The values of the attributes with these names."""
    return [html.unescape(one) for one in re.findall(rf'<[^>]*?\s(?:{"|".join(names)})="([^"]*)"', page)]


def test_every_notebook_and_guide_is_a_page_and_nothing_else_is(site, pages):
    """No solution either; that nothing of one is in what the pages are made of, test_notebooks.py shows."""
    sources = [*(ROOT / "course").glob("*.ipynb"), *EXERCISES, *(ROOT / "docs").glob("*.md")]
    made = [*(source.relative_to(ROOT) for source in sources), Path("index.md"), Path("CONTRIBUTING.md")]
    assert pages.keys() == {site / path.with_suffix(".html") for path in [*made, Path("search.html")]}
    assert not [path for path in site.rglob("*") if "solutions" in path.parts or path.suffix == ".ipynb"]


def test_the_front_page_leads_everywhere(pages, site):
    article = re.search(r"<article.*</article>", pages[site / FRONT], re.DOTALL)[0]
    links = attributes(article, "href")
    assert {f"course/{chapter}.html" for chapter in CHAPTERS} <= set(links)
    assert {CLAIMS, GUIDE, "CONTRIBUTING.html", course_address(ROOT)} <= set(links)
    assert "make lab" in content(article)


def test_cells_for_other_places_are_left_out_and_buttons_lead_there(pages, site):
    ours = course_address(ROOT).removeprefix("https://github.com/")
    for path in NOTEBOOKS:
        name = path.relative_to(ROOT).as_posix()
        page = pages[(site / name).with_suffix(".html")]
        text, links = plain(content(page)), attributes(page, "href")
        for cell in notebook(path).cells:
            if "remove-cell" in cell.metadata.get("tags", ()):
                assert plain(cell.source) not in text
        assert f"https://mybinder.org/v2/gh/{ours}/main?urlpath=lab/tree/{name}" in links
        assert f"https://colab.research.google.com/github/{ours}/blob/main/{name}" in links


def test_links_lead_somewhere(site, pages):
    ids = {path: set(attributes(page, "id", "name")) for path, page in pages.items()}
    broken = []
    for path, page in pages.items():
        for link in set(attributes(page, "href", "src")):
            parts = urlsplit(link)
            if parts.scheme in ("https", "http"):
                good = bool(re.fullmatch(r"[\w.-]+\.\w+|127\.0\.0\.1", parts.hostname or ""))
            elif parts.scheme:
                good = parts.scheme in ("data", "mailto")
            else:
                target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                target = target / "index.html" if target.is_dir() else target
                good = target.is_relative_to(site) and target.is_file()
                if good and parts.fragment and target.suffix == ".html":
                    good = unquote(parts.fragment) in ids[target]
            if not good:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(site) as address:
        yield address


@pytest.fixture
def visit(browser, address) -> Callable:
    @contextmanager
    def new(path: str, width: int = 1280, scripts: bool = True) -> Iterator:
        """Open a page in a window; gives it, and what went wrong or over the wire in it."""
        how = {"viewport": {"width": width, "height": 844}, "java_script_enabled": scripts}
        # The animations of the theme would be measured half-way.
        with browser.new_context(**how, reduced_motion="reduce") as context:
            seen = SimpleNamespace(page=context.new_page(), errors=[], responses=[])
            seen.page.set_default_timeout(PATIENCE * 1000)
            seen.page.on("console", lambda said: said.type == "error" and seen.errors.append(said.text))
            seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
            seen.page.on("requestfailed", lambda request: seen.errors.append(request.url))
            seen.page.on("response", lambda response: seen.responses.append(response))
            seen.page.goto(address + path.removeprefix("index.html"))
            yield seen

    return new


@pytest.mark.parametrize("path", [FRONT, *PAGES, EXERCISE, CLAIMS, SEARCH, GUIDE])
def test_on_a_phone_nothing_fails_comes_from_elsewhere_scrolls_sideways_or_is_long(visit, address, path):
    """Bytes and elements are the same on every machine; benchmarks/pages.py has the seconds."""
    with visit(path, width=390) as window:
        window.page.wait_for_load_state("networkidle")
        assert window.errors == []
        assert all(response.url.startswith((address, "data:")) for response in window.responses)
        assert window.page.evaluate("document.documentElement.scrollWidth") == 390
        weight = sum(len(response.body()) for response in window.responses)
        assert 100_000 < weight < (4_000_000 if path in PAGES else 1_000_000 if path == FRONT else 1e8)
        assert window.page.evaluate("document.getElementsByTagName('*').length") < 30_000
        if path in PAGES:  # their wide outputs scroll inside themselves
            assert window.page.evaluate("document.documentElement.scrollHeight") <= 30 * 844
            window.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
            wide = "[...document.querySelectorAll('.text_html')].filter(o => o.scrollWidth > o.clientWidth)"
            assert window.page.evaluate(f"{wide}.length") > 1
            assert window.page.evaluate(f"{wide}.every(o => getComputedStyle(o).overflowX == 'auto')")


@pytest.mark.parametrize("path", [FRONT, CHAPTER, EXERCISE, CLAIMS])
def test_it_is_accessible(visit, path):
    with visit(path) as window:
        if path == CHAPTER:
            answer(window.page, 7)
        # A chapter's many coloured words would take most of the time; an exercise has the same colours.
        parts = {"exclude": [[".cell_input .highlight"]]} if path == CHAPTER else None
        assert findings_in_both_schemes(window.page, parts, **WCAG) == []


def test_search_finds_a_chapter_and_the_score_can_be_filtered(visit):
    with visit(FRONT) as window:
        window.page.locator("button.search-button-field:visible").first.click()
        window.page.locator("dialog[open] input[type=search]").fill("pin_memory")
        window.page.keyboard.press("Enter")
        window.page.locator(f"#search-results a[href^='{LONGEST}']").first.wait_for()
        sentence = re.compile(r"^[A-Z].*pin_memory.*\.$")
        window.page.locator("#search-results .context", has_text=sentence).first.wait_for()
        window.page.goto(window.page.url.partition("search")[0] + CLAIMS)
        window.page.get_by_label("Claims about").fill("cdist")
        shown = window.page.locator("#the-score").inner_text()
        assert "torch.cdist is faster" in shown and "from_numpy" not in shown
        assert window.page.locator("form output").inner_text().startswith("1 of ")


def test_a_result_is_folded_until_somebody_has_guessed_and_unfolds_without_a_script(visit):
    with visit(CHAPTER, scripts=False) as window:
        result = window.page.locator("details", has=window.page.get_by_text("Guess first: write")).first
        chart, summary = result.get_by_role("img", include_hidden=True), result.locator("summary").first
        assert not chart.is_visible()
        assert re.fullmatch(r"100,000 equal numbers: measured on .+\. Guess first: .+", summary.inner_text())
        summary.focus()
        window.page.keyboard.press("Enter")
        chart.wait_for(state="visible")


def test_every_question_of_a_chapter_can_be_played(pages, site):
    """But for what others published, which the comparison above it has asked already."""
    text = "".join(pages[site / path] for path in PAGES)
    assert re.findall(rf"<details(?![^>]* data-asked=)[^>]*><summary>(?!What others)[^<]*{LATER}", text) == []
    assert html.escape('["arithmetic"]') in pages[site / PAGES[16]]  # saved most, as its prices say


def answer(page, factor: float) -> str:
    """Answer the first open question with so many times what is right; gives what a notebook says of it."""
    form, fold = (page.locator(f"form.guess:has(button){of}").first for of in ("", " + details"))
    asked = json.loads(fold.get_attribute("data-asked"))
    truths, boxes = tuple(asked["truths"]), form.locator("input:not([type=range]), select").all()
    missed = lambda one: "bytes" if isinstance(one, str) else factor * one
    guesses = truths if factor == 1 else tuple(map(missed, truths))
    for guess, box in zip(guesses, boxes, strict=True):
        (box.select_option if "choices" in asked else box.fill)(str(guess))
    form.get_by_role("button").click()
    return how_near(guesses, truths)


@pytest.mark.parametrize("path", [PAGES[16], PAGES[17]])
def test_a_guess_is_judged_and_kept_as_in_a_notebook_and_sent_nowhere(visit, path, monkeypatch, tmp_path):
    monkeypatch.setattr(store, "folder", lambda: tmp_path)
    with visit(path) as window:
        window.page.wait_for_load_state("networkidle")
        page, loaded = window.page, len(window.responses)
        number = page.locator("form.guess").count()
        words = [answer(page, factor) for factor in ([1, 0.92, 1.19, 0.84, 1.21, 0.51, 2.01] * 3)[:number]]
        assert set(words) == {RIGHT, CLOSE, FAR}
        said = page.locator("form output").all_inner_texts()
        assert [re.fullmatch(r"You said .+, it (was|is mostly) .+: (.+)\.", one)[2] for one in said] == words
        ratios = [one for one in said if "×" in one]
        assert page.get_by_role("img", name=re.compile("You said .+×")).count() == len(ratios)
        store.write("guesses", json.loads(page.evaluate("localStorage.getItem('fast-pytorch-guesses')")))
        assert tally() in page.locator(".journal").inner_text()
        assert len(window.responses) == loaded
        page.reload()
        assert page.locator("form output").all_inner_texts() == said
        page.goto(page.url.replace(path, FRONT))
        assert f"{number - words.count(FAR)} of {number} within 2×" in page.locator("#chapters").inner_text()
        page.get_by_role("button", name="Forget them").click()
        assert page.evaluate("localStorage.getItem('fast-pytorch-guesses')") == "{}"


def test_it_plays_where_nothing_can_be_kept_and_tells_what_a_size_takes(visit):
    with visit(PAGES[18]) as window:
        refuse = "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no') }})"
        window.page.add_init_script(refuse)
        window.page.reload()
        window.page.get_by_label("by a slider").first.press("End")
        window.page.get_by_role("button", name="Compare").first.click()
        assert "You said 10,000×, it was" in window.page.locator("form output").first.inner_text()
        window.page.get_by_role("slider", name="Size").press("End")
        assert window.page.locator(".sizes output").inner_text().startswith("1,000,000 numbers: ")
