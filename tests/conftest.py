"""What all tests share: the repository, and runs like those of a shell without this machine's habits."""

import os
import sys
from collections.abc import Iterator

import pytest

# Some shells switch Python's bytecode cache off; every child process would then compile everything again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# git refuses a checkout that belongs to somebody else, as it may in a container.
os.environ |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}


@pytest.fixture(scope="module")
def browser() -> Iterator:
    """Chromium without a window, as Playwright's Browser.

    Not for the whole session: while it is there, an event loop runs in this process, and other tests start
    their own.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    import chromium

    with playwright.sync_playwright() as engines:
        browser = chromium.launch(engines)
        yield browser
        browser.close()
