"""Pages about submissions as their readers see them, in a real browser: what they ask for, run, and show."""

import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from lab_server import environment
from playwright.sync_api import BrowserContext
from programs import running

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
