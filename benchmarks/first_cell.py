"""How long a newcomer waits: from a fresh clone to the first cell of chapter 01, in JupyterLab in a browser.

Everything is installed anew, as `make lab` does it: some gigabytes are downloaded, and deleted at the end.
Needs Chromium, like tests/browser.

    python benchmarks/first_cell.py
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "browser")]

import chromium  # noqa: E402
from lab_notebook import Notebook  # noqa: E402
from lab_server import running_lab  # noqa: E402


def main() -> None:
    """Do it once, and print the seconds of each step."""
    start = last = perf_counter()

    def done(step: str) -> None:
        nonlocal last
        now = perf_counter()
        print(f"{now - last:7.1f} s  {step}", flush=True)
        last = now

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        clone, home = Path(folder, "clone"), Path(folder, "home")
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        done("git clone")
        with running_lab(clone, home, python=None, patience=1800) as address:
            done("make lab, until it prints its address")
            browser = chromium.launch(playwright)
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(address.replace("index.ipynb", "01_tensor_creation.ipynb"))
            chapter = Notebook(page, "01 · Creating tensors")
            done("chapter 01 opens, its kernel is ready")
            chapter.run("import warnings")
            expect(chapter.cell("import warnings")).to_contain_text(re.compile(r"\[1\]:"))
            chapter.wait_until_idle()
            done("its first cell has run")
            print(f"{perf_counter() - start:7.1f} s  all together")
            browser.close()


if __name__ == "__main__":
    main()
