"""How long a reader waits for a page of the website: each chapter in Chromium, from a server on this machine.

Build the website first (`make site`). A page is opened three times; the fastest time counts, because whatever
else the machine does can only add to it.

    python benchmarks/pages.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "build" / "site"
sys.path.insert(0, str(ROOT / "tests"))

import chromium  # noqa: E402
from programs import served  # noqa: E402

LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"


def main() -> None:
    """Open every chapter, and print its seconds and its weight."""
    pages = sorted((SITE / "course").glob("[0-9]*.html"))
    if not pages:
        sys.exit("There is no website yet: make site")
    with served(SITE) as server, sync_playwright() as playwright:
        browser = chromium.launch(playwright)
        for page in pages:
            address = f"{server}{page.relative_to(SITE)}"
            seconds = min(opened(browser, address) for _ in range(3))
            print(f"{seconds:6.2f} s  {page.stat().st_size / 1e6:5.2f} MB  {page.stem}", flush=True)
        browser.close()


def opened(browser, address: str) -> float:
    """Seconds until a page's load event, in a window that has nothing in its cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 844})
    window = context.new_page()
    window.goto(address)
    seconds = window.evaluate(LOADED)
    context.close()
    return seconds


if __name__ == "__main__":
    main()
