"""JupyterLab on a copy of the course, and a real browser to look at it."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import chromium
import pytest
from lab_server import running_lab
from PIL import Image
from playwright.sync_api import Browser, Page
from repository import all_files, copy_files

# What a site sets for nbgrader. What students fetch lies as deep as exercises/ does, so that its links lead
# somewhere and its data is found.
SITE = """
c = get_config()
c.Exchange.root = {exchange!r}
c.Exchange.assignment_dir = {fetched!r}
c.CourseDirectory.course_id = "fast-pytorch"
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", type=Path, metavar="FOLDER", help="write the README's pictures there")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where JupyterLab's user keeps settings and caches; nbgrader is configured there."""
    home = tmp_path_factory.mktemp("home")
    (home / "JUPYTER_CONFIG_DIR").mkdir()
    return home


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    """A copy of the course, with an exchange for nbgrader."""
    course = tmp_path_factory.mktemp("course")
    copy_files(course, all_files())
    exchange, fetched = home / "exchange", course / "fetched"
    for folder in (exchange, fetched):
        folder.mkdir()
    exchange.chmod(0o777)
    site = SITE.format(exchange=str(exchange), fetched=str(fetched))
    (home / "JUPYTER_CONFIG_DIR" / "nbgrader_config.py").write_text(site)
    return course


@pytest.fixture(scope="module")
def lab(browser: Browser, course: Path, home: Path) -> Iterator[str]:
    """JupyterLab's address; ``browser`` comes first, so that nothing starts where there is none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(course))  # the copy's package, not the one that is installed
        with running_lab(course, home) as address:
            yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh browser page; the test fails if anything goes wrong in the browser unseen."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(chromium.PATIENCE)
    page = context.new_page()
    errors: list[str] = []
    context.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    context.on("weberror", lambda problem: errors.append(str(problem.error)))
    yield page
    context.close()
    assert errors == []


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Path | None:
    """Where ``--screenshots`` asks for the README's pictures; else none are taken."""
    return request.config.getoption("--screenshots", None)


def picture_of(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


@pytest.fixture
def screenshot(folder: Path | None) -> Callable[[Page, str], None]:
    """Takes a picture of a page."""

    def take(page: Page, name: str) -> None:
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            # 256 colours: half the size, and nobody sees a difference.
            small = picture_of(page).quantize(256, dither=Image.Dither.NONE)
            small.save(folder / f"{name}.png", optimize=True)

    return take


@pytest.fixture
def film(folder: Path | None) -> Iterator[Callable[[Page, float], None]]:
    """Takes a picture of a page for a moving one, ``guess.gif``, with the seconds that it stays."""
    shots: list[tuple[Image.Image, float]] = []
    yield lambda page, seconds: shots.append((picture_of(page), seconds)) if folder else None
    if folder and shots:
        (first, *more), seconds = zip(*shots, strict=True)
        how = {"save_all": True, "append_images": more, "loop": 0, "optimize": True}
        first.save(folder / "guess.gif", duration=[int(1000 * each) for each in seconds], **how)
