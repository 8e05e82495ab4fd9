"""The browser of this machine, for tests that look at pages, and what axe-core finds in these."""

import shutil
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Playwright, expect
from programs import BROWSERS

PATIENCE = 120_000  # milliseconds for one step: a guard against a hang, not an expectation
# Root may not use Chromium's sandbox; the rest keeps it from calling home.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--no-first-run"]

# axe's rules for WCAG 2.1, levels A and AA; its other rules are advice.
WCAG = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "resultTypes": ["violations"]}


def launch(playwright: Playwright) -> Browser:
    expect.set_options(timeout=PATIENCE)
    program = next(filter(None, map(shutil.which, BROWSERS)))
    return playwright.chromium.launch(executable_path=program, args=FLAGS)


def findings(page: Page, parts: dict[str, list] | None = None, **options: Any) -> list[str]:
    """What axe finds in a page, or in these parts of it, a line for each element."""
    found = Axe().run(page, parts, options or None).response
    assert found["passes"]
    nodes = [(one["id"], node) for one in found["violations"] for node in one["nodes"]]
    return [f"{name}: {node['html'][:200]} {node['failureSummary']}" for name, node in nodes]


def findings_in_both_schemes(page: Page, parts: dict[str, list] | None = None, **options: Any) -> list[str]:
    """What axe finds in a page with a light and a dark scheme, which it must follow."""
    found, inks = [], set()
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.reload(wait_until="networkidle")  # its scripts choose a scheme as they begin
        inks.add(page.evaluate("getComputedStyle(document.body).color"))
        found += [f"({scheme}) {one}" for one in findings(page, parts, **options)]
    assert len(inks) == 2
    return found
