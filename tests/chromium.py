"""The browser of this machine, for tests that look at pages."""

import shutil

from needed import BROWSERS
from playwright.sync_api import Browser, Playwright, expect

PATIENCE = 120_000  # milliseconds for one step: a guard against a hang, not an expectation
# Root may not use Chromium's sandbox; the rest keeps it from calling home.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--no-first-run"]


def launch(playwright: Playwright) -> Browser:
    """Start it without a window."""
    expect.set_options(timeout=PATIENCE)
    program = next(filter(None, map(shutil.which, BROWSERS)))
    return playwright.chromium.launch(executable_path=program, args=FLAGS)
